/* What the code of each program has of the workers: it finds the pool of its process, and lets it walk the program's lanes.
 *
 * Programs are compiled often and the workers rarely, so this is short. A process that has compiled has a pool already
 * (`establish` of module.py). In a library the workers are one more object, whose `rammer_maker` takes the place of this one.
 *
 * client.ll is made of this file by make_ir.py.
 */
#include "workers.h"

#define OTHERS_MAY_REPLACE __attribute__((weak, visibility("hidden")))

OTHERS_MAY_REPLACE int (*rammer_maker)(Pool **pool);
OTHERS_MAY_REPLACE _Atomic(Pool *) rammer_pool_of_process;

/* Walk all lanes of a program, lane i from row begin[i] on; their number is negative for a brief one. False where this process
 * has no workers. */
bool rammer_run(Walk walk, void *environment, const int *begin, int lanes) {
  Pool *pool = atomic_load(&rammer_pool_of_process);
  if (!pool) {
    pool = find_pool();
    if (!pool && rammer_maker) rammer_maker(&pool);
    if (!pool) return false;
    atomic_store(&rammer_pool_of_process, pool);
  }
  pool->entries->run(pool, walk, environment, begin, lanes);
  return true;
}
