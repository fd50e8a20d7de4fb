"""Recurrent models that are called step by step: their states go in and come out.

voice_activity   whether somebody speaks in a frame of sound
"""
