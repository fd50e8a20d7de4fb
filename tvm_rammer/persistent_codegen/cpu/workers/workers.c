/* The workers that walk the lanes of rPrograms on a CPU (docs/architecture.md, D10).
 *
 * A lane is an order of rows, and whoever has claimed it walks it: a lane's whole state is the row that it has come to.
 * The caller of a program walks lanes itself. Helper threads take lanes that nobody is on, and so does everybody who
 * would wait. A call ends with its last row; it never waits for a helper that did not come.
 *
 * All modules of a process share one pool. What its threads write is zero at first, and again in a forked child. It is
 * never freed, so a helper may look at a job that has ended meanwhile: it finds no lane to claim there.
 *
 * workers.ll is made of this file by make_ir.py. Programs reach it by way of client.c.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>

#include "clock.h"
#include "pool.h"

/* It depends on the processor (processors.py), as rammer_pause does. */
long rammer_futex(atomic_int *word, int operation, int value);

enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };
enum { DONE, HELD, FREE };      /* of a lane; FREE + row: nobody is on it, and it goes on at that row */
enum { BUSY, POLLING, ASLEEP }; /* of a helper */

/* How long somebody who can do nothing in a job keeps his processor: it may be the one that another needs. */
static const int64_t LONG_WAIT_NS = 200000;
/* A helper that was without a processor for so long, and for so large a part of its time, shares it with another process: the
 * system itself takes a few per cent now and then, which adds up while an rTask takes long. */
static const int64_t LONG_GAP_NS = 500000, LARGE_PART = 8;
/* How long a call goes on with fewer workers than it could have, before it calls for helpers again. */
static const int64_t RECALL_NS = 2000000;
static const int64_t FIRST_REST_NS = 4000000, LONGEST_REST_NS = 256000000, MOST_CREDIT_NS = 5000000, PRICE_OF_LOSS = 2;

/* A job's bell: rung when a counter has grown or a lane has become free, if anybody sleeps. */

void rammer_ring(Bell *bell) {
  atomic_fetch_add(&bell->rings, 1);
  rammer_futex(&bell->rings, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static void ring_if_heard(Bell *bell) {
  if (atomic_load(&bell->sleepers)) rammer_ring(bell);
}

/* Somebody who can do nothing in a job: he polls; then says that he will sleep, and looks at all lanes once more, so that no
 * ring is lost; then he sleeps. He is on no lane meanwhile. */
typedef struct {
  Polling polling;
  int looks; /* still to be had before he sleeps; 0: he has not said so */
  int rings;
} Waiter;

static void stop_waiting(Waiter *waiter, Bell *bell) {
  if (waiter->looks) atomic_fetch_sub(&bell->sleepers, 1);
  *waiter = (Waiter){0};
}

/* How long we slept. */
static int64_t wait_a_little(Waiter *waiter, Bell *bell, int lanes) {
  if (waiter->looks > 1) {
    waiter->looks--;
  } else if (waiter->looks == 1) {
    int64_t since_ns = now_ns();
    rammer_futex(&bell->rings, FUTEX_WAIT_PRIVATE, waiter->rings);
    stop_waiting(waiter, bell);
    return now_ns() - since_ns;
  } else if (!poll_on(&waiter->polling, LONG_WAIT_NS)) {
    atomic_fetch_add(&bell->sleepers, 1);
    waiter->looks = 1 + lanes;
    waiter->rings = atomic_load(&bell->rings);
  }
  return 0;
}

/* Lanes. The number of the job is part of a lane's state: a claim that comes too late fails. */

static void set_lane(Job *job, int lane, int state) {
  atomic_store(&job->lane[lane].state, (uint64_t)job->number << 32 | (uint32_t)state);
}

/* Claim a lane that nobody is on. The row at which it goes on, or -1. */
static int claim(Job *job, int lane) {
  uint64_t state = atomic_load(&job->lane[lane].state);
  if ((uint32_t)state < FREE) return -1;
  uint64_t held = (state & ~(uint64_t)UINT32_MAX) | HELD;
  return atomic_compare_exchange_strong(&job->lane[lane].state, &state, held) ? (int)((uint32_t)state - FREE) : -1;
}

/* Claim some lane, and look at `first` first. */
static int claim_any(Job *job, int first, int *lane) {
  int lanes = atomic_load(&job->lanes);
  for (int i = 0; i < lanes; i++) {
    *lane = (first + i) % lanes;
    int row = claim(job, *lane);
    if (row >= 0) return row;
  }
  return -1;
}

static void count_finished(Job *job) {
  if (atomic_fetch_sub(&job->unfinished, 1) == 1) ring_if_heard(&job->bell);
}

/* Walk all lanes on the caller's thread alone; nobody sleeps whom the bell would wake. */
static void walk_alone(Walk walk, void *environment, const int *begin, int lanes) {
  Bell bell = {.walkers = 1, .lanes = lanes};
  int row[lanes], left = lanes;
  for (int lane = 0; lane < lanes; lane++) row[lane] = begin[lane];
  for (int lane = 0; left; lane = (lane + 1) % lanes) {
    if (row[lane] < 0) continue;
    walk(environment, lane, &row[lane], &bell);
    left -= row[lane] < 0;
  }
}

/* Helpers. */

/* Note how much this thread has worked since the last time, and how long it could have but had no processor. Whether the
 * latter was a long time. */
static bool take_stock(Helper *helper) {
  int64_t used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), now = now_ns();
  int64_t worked_ns = used_ns - helper->used_ns, lost_ns = now - helper->seen_ns - worked_ns;
  helper->used_ns = used_ns;
  helper->seen_ns = now;
  helper->credit_ns += worked_ns - PRICE_OF_LOSS * lost_ns;
  if (helper->credit_ns > MOST_CREDIT_NS) {
    helper->credit_ns = MOST_CREDIT_NS;
    helper->rest_ns = 0;
  }
  return lost_ns > LONG_GAP_NS && lost_ns > (worked_ns + lost_ns) / LARGE_PART;
}

/* Leave a job: the caller at its end, a helper where others are as many as the lanes that have not ended. */
static bool leaves(Job *job, const Helper *helper) {
  int walkers = atomic_load(&job->bell.walkers);
  while (helper ? walkers > atomic_load(&job->unfinished) : !atomic_load(&job->unfinished)) {
    if (atomic_compare_exchange_strong(&job->bell.walkers, &walkers, walkers - 1)) return true;
  }
  return false;
}

static void add_helper(Pool *pool, int number) {
  Helper *helper = &pool->state->helper[number];
  helper->pool = pool;
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the threads of the program that uses us */
  if (pthread_create(&thread, NULL, pool->entries->help, helper) == 0) {
    pthread_detach(thread);
    atomic_store(&pool->state->helpers, number + 1);
  } else {
    atomic_store(&pool->workers, number + 1); /* the system gives no more threads */
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* See to it that so many helpers are awake, but for those that rest; new ones are made where there are too few. */
static void call_helpers(Pool *pool, int wanted) {
  State *state = pool->state;
  int most = atomic_load(&pool->workers) - 1;
  if (most > MAX_HELPERS) most = MAX_HELPERS;
  int helpers = atomic_load(&state->helpers);
  for (int i = 0; i < helpers && i < most && wanted > 0; i++) {
    Helper *helper = &state->helper[i];
    int now = atomic_load(&helper->state);
    if (now == POLLING) wanted--;
    int64_t rests_until_ns = atomic_load(&helper->rests_until_ns);
    if (now != ASLEEP || (rests_until_ns && now_ns() < rests_until_ns)) continue;
    if (atomic_compare_exchange_strong(&helper->state, &now, BUSY)) rammer_futex(&helper->state, FUTEX_WAKE_PRIVATE, 1);
    wanted--;
  }
  if (wanted <= 0 || helpers >= most || atomic_exchange(&state->adding, 1)) return;
  for (helpers = atomic_load(&state->helpers); wanted > 0 && helpers < most; wanted--, helpers++) add_helper(pool, helpers);
  atomic_store(&state->adding, 0);
}

/* Call for helpers again where a call has gone on for a while with fewer workers than it could have: since_ns is when that began. */
static void recall_helpers(Pool *pool, Job *job, int64_t *since_ns) {
  int unfinished = atomic_load(&job->unfinished), workers = atomic_load(&pool->workers);
  int wanted = (unfinished < workers ? unfinished : workers) - atomic_load(&job->bell.walkers);
  int64_t now = wanted > 0 ? now_ns() : 0;
  if (!now || !*since_ns) *since_ns = now;
  if (now - *since_ns <= RECALL_NS) return;
  *since_ns = now;
  call_helpers(pool, wanted);
}

/* Take part in a job, beginning with a lane that we have claimed: walk lanes that nobody is on, each as far as its waits
 * allow. The caller (`helper` is NULL) stays to the end; a helper leaves when he shares his processor, or when there are enough
 * others: not when all lanes are taken, for whoever changes lanes may have just claimed the one that is free. */
static void take_part(Pool *pool, Job *job, Helper *helper, int lane, int row) {
  Waiter waiter = {0};
  int64_t alone_since_ns = 0;
  atomic_fetch_add(&job->bell.walkers, 1);
  for (;;) {
    int reached = row;
    if (row >= 0) {
      job->walk(job->environment, lane, &reached, &job->bell);
      set_lane(job, lane, reached < 0 ? DONE : FREE + reached);
    }
    if (reached != row) {
      stop_waiting(&waiter, &job->bell);
      if (reached < 0) count_finished(job);
    } else if (helper && take_stock(helper)) {
      ring_if_heard(&job->bell);
      atomic_fetch_sub(&job->bell.walkers, 1);
      break;
    } else {
      int64_t slept_ns = wait_a_little(&waiter, &job->bell, atomic_load(&job->lanes));
      if (helper) helper->seen_ns += slept_ns; /* sleep is no loss */
    }
    row = claim_any(job, lane + 1, &lane);
    if (row < 0 && leaves(job, helper)) break;
    if (row >= 0 && !helper) recall_helpers(pool, job, &alone_since_ns);
  }
  stop_waiting(&waiter, &job->bell);
}

static bool help_someone(Pool *pool, Helper *helper) {
  int first = 1 + (int)(helper - pool->state->helper);
  bool helped = false;
  for (int i = 0; i < JOBS; i++) {
    Job *job = &pool->state->job[i];
    int lane, row = claim_any(job, first, &lane);
    if (row < 0) continue;
    take_part(pool, job, helper, lane, row);
    helped = true;
  }
  return helped;
}

/* A helper that loses its processor on a lane stops the whole program. Where that costs more than its work is worth, it
 * rests, and the callers go on without it: for some milliseconds, and for twice as long each time that it comes again. */
static bool must_rest(Helper *helper) {
  take_stock(helper);
  if (helper->credit_ns >= 0) return false;
  helper->credit_ns = 0;
  helper->rest_ns = helper->rest_ns ? 2 * helper->rest_ns : FIRST_REST_NS;
  if (helper->rest_ns > LONGEST_REST_NS) helper->rest_ns = LONGEST_REST_NS;
  atomic_store(&helper->rests_until_ns, now_ns() + helper->rest_ns);
  return true;
}

/* Poll for another job. False where none came for a while. */
static bool poll_for_job(const Pool *pool, Helper *helper, int jobs_seen) {
  Polling polling = {0};
  bool came;
  atomic_store(&helper->state, POLLING);
  do came = atomic_load(&pool->state->jobs) != jobs_seen;
  while (!came && poll_on(&polling, pool->patience_ns));
  atomic_store(&helper->state, BUSY);
  return came;
}

/* Sleep until a caller wakes us; not at all where a job that we want has come since we looked. */
static void sleep_until_woken(const Pool *pool, Helper *helper, int jobs_seen, bool rests) {
  int asleep = ASLEEP;
  atomic_store(&helper->state, ASLEEP);
  bool came = !rests && atomic_load(&pool->state->jobs) != jobs_seen;
  if (came && atomic_compare_exchange_strong(&helper->state, &asleep, BUSY)) return;
  int64_t since_ns = now_ns();
  while (atomic_load(&helper->state) == ASLEEP) rammer_futex(&helper->state, FUTEX_WAIT_PRIVATE, ASLEEP);
  helper->seen_ns += now_ns() - since_ns;
}

void rammer_help(void *argument) {
  Helper *helper = argument;
  Pool *pool = helper->pool;
  take_stock(helper);
  helper->credit_ns = MOST_CREDIT_NS;
  for (;;) {
    int jobs_seen = atomic_load(&pool->state->jobs);
    bool rests = help_someone(pool, helper) && must_rest(helper);
    if (rests || !poll_for_job(pool, helper, jobs_seen)) sleep_until_woken(pool, helper, jobs_seen, rests);
  }
}

/* What the code of a program calls. */

/* Whether there was no call for so long that all helpers sleep. */
static bool was_idle(const Pool *pool) { return now_ns() - atomic_load(&pool->state->ended_ns) >= pool->patience_ns; }

/* NULL where the caller walks all lanes alone. */
static Job *take_job(Pool *pool, int lanes, bool brief) {
  if (lanes < 2 || lanes > MAX_LANES || atomic_load(&pool->workers) < 2 || (brief && was_idle(pool))) return NULL;
  for (int i = 0; i < JOBS; i++) {
    Job *job = &pool->state->job[i];
    if (!atomic_load(&job->taken) && !atomic_exchange(&job->taken, 1)) return job;
  }
  return NULL;
}

static void note_end(Pool *pool) { atomic_store(&pool->state->ended_ns, now_ns()); }

/* Walk all lanes of a program, lane i from row begin[i] on. A negative number of lanes: those of a brief program, for which no
 * helper is woken but by the second of two calls, where more are likely to come. */
void rammer_walk_all(Pool *pool, Walk walk, void *environment, const int *begin, int lanes) {
  bool brief = lanes < 0;
  if (brief) lanes = -lanes;
  Job *job = take_job(pool, lanes, brief);
  if (!job) {
    walk_alone(walk, environment, begin, lanes);
    if (brief && atomic_load(&pool->workers) > 1) note_end(pool);
    return;
  }
  job->walk = walk;
  job->environment = environment;
  job->bell.ring = pool->entries->ring;
  job->number++;
  atomic_store(&job->unfinished, lanes);
  atomic_store(&job->bell.lanes, lanes);
  for (int lane = 0; lane < lanes; lane++) set_lane(job, lane, lane ? FREE + begin[lane] : HELD);
  atomic_store(&job->lanes, lanes);
  atomic_fetch_add(&pool->state->jobs, 1);
  call_helpers(pool, lanes - 1);
  take_part(pool, job, NULL, 0, begin[0]);
  atomic_store(&job->lanes, 0);
  atomic_store(&job->taken, 0);
  note_end(pool);
}
