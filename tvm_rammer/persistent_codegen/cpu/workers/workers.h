/* The pool of workers: what all modules of a process share. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registry.h"

enum { JOBS = 16, MAX_LANES = 128, MAX_HELPERS = 127, LINE = 64 };
/* Calls that helpers take part in at the same time; vEUs of a program; threads; bytes of a cache line. */

/* What those on the lanes of one job know of each other; who waits for long sleeps until the bell rings (sync.ll). */
typedef struct Bell {
  _Alignas(LINE) atomic_int sleepers;
  atomic_int rings;
  atomic_int walkers, lanes;
  int (*ring)(struct Bell *bell);
} Bell;

/* Walk a lane from a row on; then `row` is that of a wait that is not over yet, or -1 where the lane ended. Zero: TIR can
 * return nothing else. */
typedef int (*Walk)(void *environment, int lane, int *row, Bell *bell);

typedef struct {
  _Alignas(LINE) _Atomic uint64_t state;
} Lane;

/* A call of a program. Its lanes begin when their states are set; until then and after them nobody reads the rest. */
typedef struct {
  _Alignas(LINE) atomic_int taken;
  atomic_int lanes;
  uint32_t number;
  Walk walk;
  void *environment;
  _Alignas(LINE) atomic_int unfinished;
  Bell bell;
  Lane lane[MAX_LANES];
} Job;

typedef struct Pool Pool;

typedef struct {
  _Alignas(LINE) atomic_int state;
  Pool *pool;
  int64_t used_ns, seen_ns, credit_ns, rest_ns; /* its own: processor time, the clock, worth of its work, last rest */
  _Atomic int64_t rests_until_ns;
} Helper;

/* What threads write: zero in a new process, and in a forked child. Libraries of different versions may share it: another layout
 * of it or of Pool takes another NAME (registry.h). */
typedef struct {
  _Alignas(LINE) atomic_int jobs; /* that there were so far */
  _Alignas(LINE) atomic_int helpers, adding;
  _Atomic int64_t ended_ns; /* when the last call of a program ended */
  Helper helper[MAX_HELPERS];
  Job job[JOBS];
} State;

/* What the pool has addresses for: TVM inlines all functions of this text into their callers, so these are functions of TIR
 * that call the ones below (entries.py). They return zero. */
typedef struct {
  int (*run)(Pool *pool, Walk walk, void *environment, const int *begin, int lanes);
  int (*ring)(Bell *bell);
  void *(*help)(void *helper); /* never returns */
  SafeCall give_pool;
} Entries;

struct Pool {
  atomic_int workers;  /* that walk lanes at the same time, callers of programs included */
  int64_t patience_ns; /* how long a worker polls before it sleeps */
  const Entries *entries;
  State *state;
};

void rammer_make_pool(Pool **pool, const Entries *entries);
int rammer_give_pool(void *self, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result);
void rammer_help(void *helper);
void rammer_ring(Bell *bell);
void rammer_walk_all(Pool *pool, Walk walk, void *environment, const int *begin, int lanes);
