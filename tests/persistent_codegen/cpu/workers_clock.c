/* A helper in a job, one thread and a clock of our own: asleep he loses nothing, without a processor he leaves. The argument is
 * what happens while the lane waits: "sleep", "loss". */
#define _GNU_SOURCE
#include <time.h>

static long long now, used; /* of the clock, and of this thread's processor, in nanoseconds */

static int told_time(clockid_t clock, struct timespec *time) {
  long long ns = clock == CLOCK_THREAD_CPUTIME_ID ? used : now;
  *time = (struct timespec){ns / 1000000000, ns % 1000000000};
  return 0;
}

#define clock_gettime told_time
#include "workers.c"

#include <stdio.h>
#include <string.h>

static bool loses, passes;

void rammer_pause(void) {
  used += 100;
  now += loses ? 5000000 : 100;
}

/* Another thread takes 50 ms to what the lane waits for, and rings. */
long rammer_futex(atomic_int *word, int operation, int value) {
  (void)word, (void)value;
  if (operation == FUTEX_WAIT_PRIVATE) now += 50000000, passes = true;
  return 0;
}

/* A wait that is over once the other thread has rung, and then one more that is over at the third look. */
static int walk(void *environment, int lane, int *row, Bell *bell) {
  static int looks;
  (void)environment, (void)lane, (void)bell;
  if (*row == 0 && passes) *row = 1;
  if (*row == 1 && looks++ > 1) *row = -1;
  return 0;
}

int main(int count, char **arguments) {
  static State state;
  static Pool pool = {.state = &state};
  loses = count > 1 && strcmp(arguments[1], "loss") == 0;
  Helper *helper = &state.helper[0];
  *helper = (Helper){.pool = &pool, .credit_ns = MOST_CREDIT_NS};
  Job *job = &state.job[0];
  job->walk = walk;
  job->number = 1;
  job->unfinished = job->lanes = job->bell.lanes = 1;
  set_lane(job, 0, FREE);
  help_someone(&pool, helper);
  printf("%s, %s\n", job->unfinished ? "left" : "finished", must_rest(helper) ? "rests" : "goes on");
  return 0;
}
