/* The clock, and polling for a while. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { POLLS_PER_LOOK = 64 }; /* how often a worker that polls looks at the clock */

/* It depends on the processor (processors.py). */
void rammer_pause(void);

static int64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* Polling: pause, and look at the clock now and then. */

typedef struct {
  int polls;
  int64_t since_ns;
} Polling;

static bool poll_on(Polling *polling, int64_t patience_ns) {
  rammer_pause();
  if (++polling->polls % POLLS_PER_LOOK) return true;
  int64_t now = now_ns();
  if (!polling->since_ns) polling->since_ns = now;
  return now - polling->since_ns < patience_ns;
}
