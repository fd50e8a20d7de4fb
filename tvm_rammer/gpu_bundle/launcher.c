// Launches the kernels of a plan, over and over: what a C++ executor does, without an interpreter in between.
//
// Knows no CUDA header and links to nothing of CUDA: the driver's functions come as pointers.
#include <time.h>

typedef struct {
  void* function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  unsigned cooperative;
  void** parameters;
} Launch;

typedef struct {
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  int (*launch_cooperative)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**);
  int (*launch_graph)(void*, void*);
  int (*synchronize)(void*);
} Driver;

// One run of a model: its launches, or the graph that holds them.
typedef struct {
  const Launch* launches;
  unsigned count;
  void* graph;
} Work;

static int run_once(const Driver* driver, const Work* work, void* stream) {
  if (work->graph) return driver->launch_graph(work->graph, stream);
  for (unsigned i = 0; i < work->count; ++i) {
    const Launch* it = &work->launches[i];
    int status = it->cooperative
        ? driver->launch_cooperative(it->function, it->grid[0], it->grid[1], it->grid[2], it->block[0], it->block[1],
                                     it->block[2], it->shared_bytes, stream, it->parameters)
        : driver->launch(it->function, it->grid[0], it->grid[1], it->grid[2], it->block[0], it->block[1],
                         it->block[2], it->shared_bytes, stream, it->parameters, 0);
    if (status) return status;
  }
  return 0;
}

// Launches `repeats` runs back to back. Returns the first error of the driver, or 0.
int rammer_run(const Driver* driver, const Work* work, unsigned repeats, void* stream) {
  for (unsigned i = 0; i < repeats; ++i) {
    int status = run_once(driver, work, stream);
    if (status) return status;
  }
  return 0;
}

// Runs `repeats` times, waiting for each; `microseconds` gets the time of each, from before its first launch.
int rammer_latencies(const Driver* driver, const Work* work, unsigned repeats, void* stream, double* microseconds) {
  for (unsigned i = 0; i < repeats; ++i) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    int status = run_once(driver, work, stream);
    if (!status) status = driver->synchronize(stream);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (status) return status;
    microseconds[i] = (double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_nsec - start.tv_nsec) * 1e-3;
  }
  return 0;
}
