// ---- The program around the kernels: the same text for every model ---------------------------------------------------

thread_local std::string last_error;

model_status failed(model_status status, const std::string& what) {
  last_error = what;
  return status;
}

model_status of_cuda(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return MODEL_OK;
  cudaGetLastError();  // or the next call would report it once more
  std::string what = std::string(doing) + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error);
  switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver: return failed(MODEL_NO_GPU, what);
    case cudaErrorNoKernelImageForDevice: return failed(MODEL_UNFIT_GPU, what);
    case cudaErrorMemoryAllocation: return failed(MODEL_NO_MEMORY, what);
    default: return failed(MODEL_CUDA_ERROR, what);
  }
}

#define TRY(call)                                                          \
  do {                                                                     \
    if (model_status status = of_cuda((call), #call)) return status;       \
  } while (0)

struct Closes {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Adler-32, as zlib has it.
uint32_t checksum(const std::vector<char>& data) {
  uint32_t a = 1, b = 0;
  for (size_t i = 0; i < data.size();) {
    for (size_t end = std::min(data.size(), i + 5552); i < end; ++i) b += a += static_cast<unsigned char>(data[i]);
    a %= 65521, b %= 65521;
  }
  return b << 16 | a;
}

model_status read_weights(const char* path, std::vector<char>* weights) {
  std::unique_ptr<std::FILE, Closes> file(std::fopen(path, "rb"));
  if (!file) return failed(MODEL_BAD_WEIGHTS, std::string("cannot open ") + path);
  weights->resize(kWeightsBytes);
  size_t got = std::fread(weights->data(), 1, kWeightsBytes, file.get());
  if (got != kWeightsBytes || std::fgetc(file.get()) != EOF || checksum(*weights) != kWeightsChecksum)
    return failed(MODEL_BAD_WEIGHTS, std::string(path) + " does not hold the weights that this model was compiled with");
  return MODEL_OK;
}

// Lets a kernel have its shared memory, and makes sure that blocks that wait for one another run side by side.
model_status prepare(const Launch& launch, int units) {
  if (launch.shared_bytes > 48 * 1024)
    TRY(cudaFuncSetAttribute(
        launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(launch.shared_bytes)));
  if (!launch.cooperative) return MODEL_OK;
  int resident = 0, threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, launch.kernel, threads, launch.shared_bytes));
  if (static_cast<long long>(resident) * units < static_cast<long long>(launch.grid.x))
    return failed(
        MODEL_UNFIT_GPU, std::string(launch.name) + " has " + std::to_string(launch.grid.x) +
                             " blocks that must all run at once, but this GPU holds " + std::to_string(resident) +
                             " on each of " + std::to_string(units) + " multiprocessors; export the model for this GPU");
  return MODEL_OK;
}

// The first wait of each lane that has not come true, in the run that the counters of a program are in.
std::string waits_of(const Program& program, const int32_t* state, int64_t run) {
  std::string text;
  std::vector<bool> told(static_cast<size_t>(program.blocks), false);
  for (int step = 0; step < program.steps; ++step)
    for (const Wait& wait : program.waits) {
      int64_t times = (run - 1) * program.steps + step + 1 - wait.back;
      uint32_t expected = static_cast<uint32_t>(wait.arrivals) * static_cast<uint32_t>(times);
      uint32_t seen = static_cast<uint32_t>(state[kFirstEvent + wait.event * kLine]);
      if (static_cast<int32_t>(seen - expected) >= 0 || told[static_cast<size_t>(wait.veu)]) continue;
      told[static_cast<size_t>(wait.veu)] = true;
      text += std::string(program.name) + ": vEU " + std::to_string(wait.veu) + ", row " + std::to_string(wait.row) +
              (program.steps > 1 ? ", step " + std::to_string(step) : "") + ": waits for event " +
              std::to_string(wait.event) + ", expected " + std::to_string(expected) + ", seen " + std::to_string(seen) + "\n";
    }
  return text;
}

bool aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % MODEL_ALIGNMENT == 0; }

}  // namespace

struct model_instance {
  int gpu = 0;
  char* memory = nullptr;
  cudaEvent_t done = nullptr;  // the end of the last run
  int64_t started = 0;         // runs, but for those in graphs
  std::mutex busy;

  ~model_instance() {
    if (done) cudaEventDestroy(done);
    cudaFree(memory);  // waits for what runs
  }

  model_status fill(const char* weights_path) {
    int units = 0, cooperative = 0;
    TRY(cudaGetDevice(&gpu));
    TRY(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, gpu));
    TRY(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, gpu));
    if (!cooperative) return failed(MODEL_UNFIT_GPU, "this GPU has no cooperative launch");
    for (const Launch& launch : kLaunches)
      if (model_status status = prepare(launch, units)) return status;
    std::vector<char> weights;
    if (model_status status = read_weights(weights_path, &weights)) return status;
    TRY(cudaMalloc(reinterpret_cast<void**>(&memory), kMemoryBytes));
    TRY(cudaMemcpy(memory, weights.data(), kWeightsBytes, cudaMemcpyHostToDevice));
    for (const Table& table : kTables)
      TRY(cudaMemcpy(memory + table.offset, table.data, table.bytes, cudaMemcpyHostToDevice));
    for (const Program& program : kPrograms) TRY(cudaMemset(memory + program.offset, 0, program.bytes));
    TRY(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    return of_cuda(cudaDeviceSynchronize(), "clearing the counters");  // other streams do not wait for it
  }

  void* address(const Address& of, const void* const* inputs, void* const* outputs) const {
    if (of.where == 0) return memory + of.offset;
    int i = of.where - 1;
    void* base = i < MODEL_NUM_INPUTS ? const_cast<void*>(inputs[i]) : outputs[i - MODEL_NUM_INPUTS];
    return static_cast<char*>(base) + of.offset;
  }

  model_status launch_all(const void* const* inputs, void* const* outputs, cudaStream_t stream) const {
    for (const Launch& launch : kLaunches) {
      void *pointers[kMostArguments], *parameters[kMostArguments];
      for (int i = 0; i < launch.count; ++i) {
        pointers[i] = address(kAddresses[launch.first + i], inputs, outputs);
        parameters[i] = &pointers[i];
      }
      cudaError_t error =
          launch.cooperative
              ? cudaLaunchCooperativeKernel(
                    launch.kernel, launch.grid, launch.block, parameters, launch.shared_bytes, stream)
              : cudaLaunchKernel(launch.kernel, launch.grid, launch.block, parameters, launch.shared_bytes, stream);
      if (model_status status = of_cuda(error, launch.name)) return status;
    }
    for (const Copy& copy : kCopies)
      TRY(cudaMemcpyAsync(
          outputs[copy.output], address(copy.from, inputs, outputs), model_outputs[copy.output].bytes,
          cudaMemcpyDeviceToDevice, stream));
    return MODEL_OK;
  }

  // Of the program that is under way: it has ended least often, and those that are launched after it as often.
  model_status report_waits(std::string* text) {
    std::lock_guard<std::mutex> no_run_begins(busy);
    cudaStream_t aside = nullptr;
    TRY(cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking));
    int64_t least = started;
    model_status status = MODEL_OK;
    for (const Program& program : kPrograms) {
      std::vector<int32_t> state(program.bytes / sizeof(int32_t));
      cudaError_t error =
          cudaMemcpyAsync(state.data(), memory + program.offset, program.bytes, cudaMemcpyDeviceToHost, aside);
      if (error == cudaSuccess) error = cudaStreamSynchronize(aside);
      if ((status = of_cuda(error, "reading the counters"))) break;
      int64_t finished = 0;
      std::memcpy(&finished, &state[kFinished], sizeof finished);
      if (finished / program.blocks >= least) continue;
      least = finished / program.blocks;
      *text = waits_of(program, state.data(), least + 1);
    }
    cudaStreamDestroy(aside);
    return status;
  }

  model_status run(const void* const* inputs, void* const* outputs, cudaStream_t stream) {
    std::lock_guard<std::mutex> one_at_a_time(busy);
    int current = -1;
    TRY(cudaGetDevice(&current));
    if (current != gpu)
      return failed(MODEL_BAD_ARGUMENT, "the instance was made on GPU " + std::to_string(gpu) + ", the current one is " +
                                            std::to_string(current));
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    TRY(cudaStreamIsCapturing(stream, &capture));
    bool captured = capture != cudaStreamCaptureStatusNone;
    if (!captured) TRY(cudaStreamWaitEvent(stream, done, 0));
    model_status status = launch_all(inputs, outputs, stream);
    started += !captured;
    if (captured) return status;
    cudaError_t recorded = cudaEventRecord(done, stream);  // of a run that failed, too: a part of it may be under way
    return status ? status : of_cuda(recorded, "cudaEventRecord(done, stream)");
  }
};

model_status model_create(const char* weights_path, model_instance** instance) {
  if (!weights_path || !instance) return failed(MODEL_BAD_ARGUMENT, "model_create: a null pointer");
  *instance = nullptr;
  std::unique_ptr<model_instance> made(new (std::nothrow) model_instance);
  if (!made) return failed(MODEL_NO_MEMORY, "model_create: out of memory");
  try {
    if (model_status status = made->fill(weights_path)) return status;
  } catch (const std::bad_alloc&) {
    return failed(MODEL_NO_MEMORY, "model_create: out of memory");
  }
  *instance = made.release();
  return MODEL_OK;
}

model_status model_run(model_instance* instance, const void* const* inputs, void* const* outputs, void* stream) {
  if (!instance || (MODEL_NUM_INPUTS && !inputs) || !outputs)
    return failed(MODEL_BAD_ARGUMENT, "model_run: a null pointer");
  for (int i = 0; i < MODEL_NUM_INPUTS; ++i)
    if (!inputs[i] || !aligned(inputs[i]))
      return failed(MODEL_BAD_ARGUMENT, std::string("input ") + model_inputs[i].name + " is null or not aligned");
  for (int i = 0; i < MODEL_NUM_OUTPUTS; ++i)
    if (!outputs[i] || !aligned(outputs[i]))
      return failed(MODEL_BAD_ARGUMENT, std::string("output ") + model_outputs[i].name + " is null or not aligned");
  return instance->run(inputs, outputs, static_cast<cudaStream_t>(stream));
}

model_status model_report_waits(model_instance* instance, char* text, size_t bytes) {
  if (!instance || !text || !bytes) return failed(MODEL_BAD_ARGUMENT, "model_report_waits: a null pointer or no room");
  std::string report;
  if (model_status status = instance->report_waits(&report)) return status;
  size_t length = std::min(bytes - 1, report.size());
  std::memcpy(text, report.data(), length);
  text[length] = 0;
  return MODEL_OK;
}

void model_destroy(model_instance* instance) { delete instance; }

const char* model_last_error(void) { return last_error.c_str(); }
