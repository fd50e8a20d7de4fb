"""Any function on a CPU: `read` analyses it, `rule` lists its tilings, `cost` predicts them, `code` schedules one."""
