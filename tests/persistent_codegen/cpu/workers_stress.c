/* Random plans, walked by the workers under a thread sanitizer: every value is that of a sequential run, and no two threads
 * touch a lane's own memory without an order between them. Arguments: workers, calling threads, runs of each, seed. */
#include "workers.c"

#include "client.c"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LANES = 5, OPERATIONS = 60, READS = 2 };

/* Seldom a place where another thread goes on: beside busy processes each yield takes as long as all the polls before a sleep. */
void rammer_pause(void) {
  static _Thread_local unsigned pauses;
  if (++pauses % 32 == 0) sched_yield();
}

long rammer_futex(atomic_int *word, int operation, int value) { return syscall(SYS_futex, word, operation, value, NULL); }

/* An operation waits for those that it reads, adds to its lane's own sum, and signals where others read it. */
typedef struct {
  int reads[READS];
  int lane;
  bool slow, signals;
} Operation;

typedef struct {
  Operation operation[OPERATIONS];
  int row[LANES][OPERATIONS], rows[LANES];
} Plan;

typedef struct {
  const Plan *plan;
  uint64_t value[OPERATIONS], sum[LANES];
  atomic_int arrived[OPERATIONS];
} Values;

static uint64_t compute(const Plan *plan, int number, const uint64_t *value, uint64_t *sum) {
  const Operation *operation = &plan->operation[number];
  uint64_t result = number + 1;
  for (int i = 0; i < READS; i++) result = result * 31 + (operation->reads[i] < 0 ? 7 : value[operation->reads[i]]);
  return sum[operation->lane] = sum[operation->lane] * 17 + result;
}

static int walk(void *environment, int lane, int *row, Bell *bell) {
  Values *run = environment;
  for (; *row < run->plan->rows[lane]; ++*row) {
    int number = run->plan->row[lane][*row];
    const Operation *operation = &run->plan->operation[number];
    for (int i = 0; i < READS; i++) {
      if (operation->reads[i] >= 0 && !atomic_load(&run->arrived[operation->reads[i]])) return 0;
    }
    if (operation->slow) usleep(number == OPERATIONS - 1 ? 4000 : 1000);
    run->value[number] = compute(run->plan, number, run->value, run->sum);
    if (!operation->signals) continue;
    atomic_fetch_add(&run->arrived[number], 1);
    if (atomic_load(&bell->sleepers)) bell->ring(bell);
  }
  *row = -1;
  return 0;
}

static void *help(void *helper) {
  rammer_help(helper);
  return NULL;
}

static int run_lanes(Pool *pool, Walk walk, void *environment, const int *begin, int lanes) {
  rammer_walk_all(pool, walk, environment, begin, lanes);
  return 0;
}

static int ring(Bell *bell) {
  rammer_ring(bell);
  return 0;
}

static const Entries ENTRIES = {run_lanes, ring, help, rammer_give_pool};

static int make(Pool **pool) {
  rammer_make_pool(pool, &ENTRIES);
  return 0;
}

static int runs, first_seed;
static atomic_int failures;

static void make_plan(Plan *plan, unsigned *seed) {
  memset(plan, 0, sizeof *plan);
  for (int n = 0; n < OPERATIONS; n++) {
    Operation *operation = &plan->operation[n];
    operation->lane = rand_r(seed) % LANES;
    operation->slow = rand_r(seed) % (n == OPERATIONS - 1 ? 2 : 80) == 0;
    for (int i = 0; i < READS; i++) {
      operation->reads[i] = rand_r(seed) % (n + 1) - 1;
      if (operation->reads[i] >= 0) plan->operation[operation->reads[i]].signals = true;
    }
    plan->row[operation->lane][plan->rows[operation->lane]++] = n;
  }
}

static void *caller(void *number) {
  unsigned seed = first_seed + (unsigned)(intptr_t)number;
  const int begin[LANES + 1] = {0};
  for (int i = 0; i < runs; i++) {
    Plan plan;
    make_plan(&plan, &seed);
    Values run = {.plan = &plan}, alone = {.plan = &plan};
    for (int n = 0; n < OPERATIONS; n++) alone.value[n] = compute(&plan, n, alone.value, alone.sum);
    int lanes = rand_r(&seed) % 2 ? LANES : -LANES; /* half of them brief */
    failures += !rammer_run(walk, &run, begin, lanes) || memcmp(run.value, alone.value, sizeof run.value) != 0;
  }
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 5) return 2;
  int callers = atoi(arguments[2]);
  runs = atoi(arguments[3]);
  first_seed = atoi(arguments[4]);
  Pool *pool;
  make(&pool);
  if (rammer_run(walk, NULL, NULL, 0)) return 2; /* nobody has said yet where the workers are */
  rammer_maker = make;
  atomic_store(&pool->workers, atoi(arguments[1]));
  pthread_t thread[callers];
  for (int i = 0; i < callers; i++) pthread_create(&thread[i], NULL, caller, (void *)(intptr_t)i);
  for (int i = 0; i < callers; i++) pthread_join(thread[i], NULL);
  printf("%d wrong of %d, %d helpers\n", atomic_load(&failures), callers * runs, atomic_load(&pool->state->helpers));
  return failures != 0;
}
