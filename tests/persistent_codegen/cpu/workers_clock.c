/* A worker in a job, one thread and a clock of our own. The argument is what happens while its lane waits:
 *   sleep   another thread takes 50 ms: who sleeps meanwhile loses nothing
 *   loss    others have the helper's processor: it leaves
 *   little  they have a fortieth of it: it stays
 *   change  another worker changes from its lane to the one that the helper was on: it stays
 *   alone   a helper has left: the caller calls for it again
 * Or "brief": which calls wake a helper. */
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

static const char *meanwhile;
static bool passes; /* the first wait is over */
static Job *job;

static bool is(const char *name) { return strcmp(meanwhile, name) == 0; }

void rammer_pause(void) {
  bool little = is("little");
  used += little ? 39000000 : 100;
  now += little ? 40000000 : is("loss") ? 5000000 : 100;
  if (little) passes = true;
  if (is("change")) {
    if (passes) set_lane(job, 1, FREE), count_finished(job);
    passes = claim(job, 0) == 0;
  }
}

/* Another thread takes 50 ms to what the lane waits for, and rings. */
long rammer_futex(atomic_int *word, int operation, int value) {
  (void)word, (void)value;
  if (operation == FUTEX_WAIT_PRIVATE) now += 50000000, passes = true;
  return 0;
}

/* A wait until `passes`, and then one more that is over at the third look. Where the caller is alone, his lanes wait for each
 * other by turns, for a millisecond each time. */
static int walk(void *environment, int lane, int *row, Bell *bell) {
  static int looks;
  (void)environment, (void)bell;
  if (is("alone")) {
    now += 1000000, used += 1000000;
    *row = *row + 1 < 5 ? *row + 1 : -1;
    return 0;
  }
  if (lane == 1) return *row = -1, 0;
  if (*row == 0 && passes) *row = 1;
  if (*row == 1 && looks++ > 1) *row = -1;
  return 0;
}

static int walk_at_once(void *environment, int lane, int *row, Bell *bell) {
  (void)environment, (void)lane, (void)bell;
  return *row = -1, 0;
}

/* Of brief programs the second of two calls wakes the helper, of others each. */
static void call_brief_programs(Pool *pool, Helper *helper) {
  static const Entries entries;
  static const struct { int lanes, gap_ns; } calls[] = {{-2, 0}, {-2, 90000}, {-2, 90000}, {-2, 110000}, {2, 110000}};
  pool->state->helpers = 1;
  pool->entries = &entries;
  pool->patience_ns = 100000;
  now = 1000000000;
  for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++) {
    helper->state = ASLEEP;
    now += calls[i].gap_ns;
    rammer_walk_all(pool, walk_at_once, NULL, (const int[]){0, 0}, calls[i].lanes);
    printf("%s%s", i ? ", " : "", helper->state == ASLEEP ? "alone" : "called");
  }
}

int main(int count, char **arguments) {
  static State state;
  static Pool pool = {.state = &state, .workers = 2};
  meanwhile = count > 1 ? arguments[1] : "";
  Helper *helper = &state.helper[0];
  *helper = (Helper){.pool = &pool, .credit_ns = MOST_CREDIT_NS};
  if (is("brief")) {
    call_brief_programs(&pool, helper);
    return 0;
  }
  int lanes = is("change") || is("alone") ? 2 : 1;
  job = &state.job[0];
  job->walk = walk;
  job->number = 1;
  job->unfinished = job->lanes = job->bell.lanes = lanes;
  set_lane(job, 0, FREE);
  if (is("alone")) {
    state.helpers = 1;
    helper->state = ASLEEP;
    set_lane(job, 1, FREE);
    take_part(&pool, job, NULL, 0, claim(job, 0));
    printf("%s, %s\n", job->unfinished ? "left" : "finished", helper->state == ASLEEP ? "alone" : "called");
    return 0;
  }
  if (lanes == 2) job->bell.walkers = 1, set_lane(job, 1, HELD);
  help_someone(&pool, helper);
  printf("%s, %s\n", job->unfinished ? "left" : "finished", must_rest(helper) ? "rests" : "goes on");
  return 0;
}
