// A CUDA driver for tests: memory is the host's, and a kernel does what its name says, at once.
//
//   double_*  out[i] = 2 * in[i]           wrong_*  out[i] = 3 * in[i]      racy_*  out[i] = 2 * in[i] + number of the launch / 1e6
//   crash_*   ends the process             hang_*   never ends              big_*   no block of it fits
//   fault_*   breaks the context           all others do nothing
//
// A cubin may also be the path of a library with emulated kernels (tests/emulation), which are run.
//
// The environment variable FAKE_CUDA_LOG names a file that gets a line for each launch.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>

typedef const char* Emulated(const int*, unsigned long long, unsigned long long, void**, char*, unsigned long long);
enum { kErrorLaunchFailed = 719, kInvalid = 1 };
typedef struct { char name[128]; Emulated* emulated; int parameters; } Function;
typedef struct { Function* function; unsigned blocks, threads, shared; void** parameters; int before[64], waits, done; } Recorded;
typedef struct { Recorded items[1024]; int count; } Graph;
static Graph* capturing;
static int broken, launches;
static char* memory;  // of all allocations, side by side
static size_t used;

static int is(const Function* f, const char* kind) { return !strncmp(f->name, kind, strlen(kind)); }

static void execute(const Recorded* it) {
  unsigned n = it->blocks * it->threads;
  if (is(it->function, "crash_")) abort();
  if (is(it->function, "fault_")) broken = 1;
  while (is(it->function, "hang_")) sleep(1);
  if (it->function->emulated) {
    const int shape[6] = {(int)it->blocks, 1, 1, (int)it->threads, 1, 1};
    void* pointers[64];
    for (int i = 0; i < it->function->parameters; ++i) pointers[i] = *(void**)it->parameters[i];
    const char* failure = it->function->emulated(shape, it->shared, (unsigned)launches++, pointers, memory, used);
    if (failure) fprintf(stderr, "%s: %s\n", it->function->name, failure), broken = 1;
    return;
  }
  float factor = is(it->function, "double_") || is(it->function, "racy_") ? 2 : is(it->function, "wrong_") ? 3 : 0;
  float extra = is(it->function, "racy_") ? 1e-6f * (float)++launches : 0;
  if (!factor) return;
  const float* in = *(float**)it->parameters[0];
  float* out = *(float**)it->parameters[1];
  for (unsigned i = 0; i < n; ++i) out[i] = factor * in[i] + extra;
}

static int launch(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, void** p, int cooperative) {
  const char* path = getenv("FAKE_CUDA_LOG");
  if (path && *path) {
    FILE* log = fopen(path, "a");
    fprintf(log, "%s %u,%u,%u %u,%u,%u %u %d%s\n", f->name, gx, gy, gz, bx, by, bz, shared, cooperative,
            capturing ? " captured" : "");
    fclose(log);
  }
  Recorded it = {f, gx * gy * gz, bx * by * bz, shared, p, {0}, 0, 0};
  if (capturing && capturing->count) it.before[it.waits++] = capturing->count - 1;
  if (capturing) capturing->items[capturing->count++] = it;
  else execute(&it);
  return broken ? kErrorLaunchFailed : 0;
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int* n) { *n = 1; return 0; }
int cuDeviceGet(int* device, int i) { *device = i; return 0; }
int cuDeviceGetName(char* name, int size, int device) { snprintf(name, (size_t)size, "Fake GPU %d", device); return 0; }
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
int cuDeviceGetAttribute(int* value, int which, int device) {
  (void)device;
  *value = which == 75 ? 9 : which == 76 ? 0 : which == 16 ? 4 : which == 95 ? 1 : 1000000;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) { (void)device; *context = &broken; return 0; }
int cuCtxSetCurrent(void* context) { return context != &broken; }
int cuCtxSynchronize(void) { return broken ? kErrorLaunchFailed : 0; }
int cuGetErrorName(int status, const char** name) {
  *name = status == kErrorLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  const size_t most = 1u << 26;
  if (!memory) memory = mmap(0, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *pointer = (uint64_t)(uintptr_t)(memory + used);
  used += (bytes + 255) / 256 * 256;
  return used > most;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) { memcpy((void*)(uintptr_t)to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) { memcpy(to, (void*)(uintptr_t)from, bytes); return 0; }
int cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t bytes) { memset((void*)(uintptr_t)at, byte, bytes); return 0; }
int cuModuleLoadData(void** module, const char* image) {
  *module = *image == '/' ? dlopen(image, RTLD_NOW) : 0;
  return *module ? 0 : memcmp(image, "\177ELF", 4) ? kInvalid : 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  Function* f = calloc(1, sizeof(Function));
  snprintf(f->name, sizeof f->name, "%s", name);
  char entry[160];
  snprintf(entry, sizeof entry, "emu_run_%s", name);
  if (module) *(void**)&f->emulated = dlsym(module, entry);
  snprintf(entry, sizeof entry, "emu_parameters_%s", name);
  if (f->emulated) f->parameters = *(const int*)dlsym(module, entry);
  *function = f;
  return 0;
}
int cuFuncSetAttribute(void* function, int which, int value) { (void)function; return which == 8 && value > 0 ? 0 : kInvalid; }
int cuFuncGetAttribute(int* value, int which, void* function) { (void)function; *value = which == 4 ? 40 : 0; return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* f, int threads, size_t shared) {
  *blocks = is(f, "big_") || threads > 1024 || shared > 232448 ? 0 : 2;
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) { (void)flags; *stream = &capturing; return 0; }
int cuStreamSynchronize(void* stream) { (void)stream; return cuCtxSynchronize(); }
int cuEventCreate(void** event, unsigned flags) { (void)flags; *event = calloc(1, sizeof(struct timespec)); return 0; }
int cuEventRecord(void* event, void* stream) { (void)stream; return clock_gettime(CLOCK_MONOTONIC, event); }
int cuEventSynchronize(void* event) { (void)event; return cuCtxSynchronize(); }
int cuEventElapsedTime(float* ms, const struct timespec* a, const struct timespec* b) {
  *ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
  return 0;
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** p, void** extra) {
  (void)stream;
  return extra ? kInvalid : launch(f, gx, gy, gz, bx, by, bz, shared, p, 0);
}
int cuLaunchCooperativeKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void* stream, void** p) {
  (void)stream;
  return launch(f, gx, gy, gz, bx, by, bz, shared, p, 1);
}
int cuStreamBeginCapture_v2(void* stream, int mode) { (void)stream; capturing = calloc(1, sizeof(Graph)); return mode != 1; }
int cuStreamEndCapture(void* stream, void** graph) { (void)stream; *graph = capturing; capturing = 0; return 0; }
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) { *executable = graph; return (int)flags; }
int cuGraphCreate(Graph** graph, unsigned flags) { *graph = calloc(1, sizeof(Graph)); return (int)flags; }
typedef struct { Function* function; unsigned shape[7]; void **parameters, *rest[3]; } KernelNode;
int cuGraphAddKernelNode_v2(Recorded** node, Graph* graph, Recorded** before, size_t count, const KernelNode* kernel) {
  const unsigned* s = kernel->shape;
  *node = &graph->items[graph->count++];
  **node = (Recorded){kernel->function, s[0] * s[1] * s[2], s[3] * s[4] * s[5], s[6], kernel->parameters, {0}, 0, 0};
  for (size_t i = 0; i < count; ++i) (*node)->before[(*node)->waits++] = (int)(before[i] - graph->items);
  return kernel->rest[0] || kernel->rest[1] || kernel->rest[2];
}
// Of the nodes that can go on the last one goes first, so that an edge that is missing shows.
int cuGraphLaunch(Graph* graph, void* stream) {
  (void)stream;
  for (int i = 0; i < graph->count; ++i) graph->items[i].done = 0;
  for (int executed = 0; executed < graph->count; ++executed) {
    for (int i = graph->count - 1; i >= 0; --i) {
      Recorded* it = &graph->items[i];
      int missing = it->done;
      for (int w = 0; w < it->waits; ++w) missing |= !graph->items[it->before[w]].done;
      if (missing) continue;
      execute(it);
      it->done = 1;
      break;
    }
  }
  return broken ? kErrorLaunchFailed : 0;
}
