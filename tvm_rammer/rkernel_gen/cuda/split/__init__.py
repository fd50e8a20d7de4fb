"""Products whose sums are split over rTasks: two functions in the place of one."""
