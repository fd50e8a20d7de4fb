"""Tuning logs: one folder for each target, to which several processes may write at once.

lines     files of JSON, a value a line, safe against kills
reader    TuningLog, what compilations ask
database  the records of a MetaSchedule database as rKernels
writer    LogWriter, every trial at once
"""
