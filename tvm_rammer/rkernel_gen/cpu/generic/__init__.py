"""Any function on a CPU: `read` looks at it, `rule` has the tilings, `cost` predicts them, `code` schedules one."""
