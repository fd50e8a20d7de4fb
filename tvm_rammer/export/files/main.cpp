// Runs the model on recorded inputs, compares with recorded outputs, and says how long a run takes.
//
//   model_check [FOLDER [TOLERANCE [PATIENCE]]]     FOLDER holds model.weights and recorded/; PATIENCE is in seconds
//
// Status: 0 all is right; 1 an output is wrong; 2 something is missing or failed; 3 a run did not end: what its blocks
// wait for is told, and the end of this process ends it.
#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "model.h"

namespace {

const int kChecks = 3, kTimed = 100;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "model_check: %s\n", what.c_str());
  std::exit(2);
}

void must(model_status status) {
  if (status != MODEL_OK) give_up(model_last_error());
}

void must(cudaError_t error) {
  if (error != cudaSuccess) give_up(std::string(cudaGetErrorName(error)) + ", " + cudaGetErrorString(error));
}

// Waits for a run, but not for ever.
void finish(model_instance* instance, cudaStream_t stream, double patience) {
  auto began = std::chrono::steady_clock::now();
  cudaError_t error;
  while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() < patience) continue;
    std::vector<char> text(1 << 20);
    must(model_report_waits(instance, text.data(), text.size()));
    std::fprintf(stderr, "model_check: a run has not ended after %g s\n%s", patience, text.data());
    std::fflush(nullptr);
    std::_Exit(3);
  }
  must(error);
}

std::vector<char> read(const std::string& path, size_t bytes) {
  std::vector<char> data(bytes);
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file || std::fread(data.data(), 1, bytes, file) != bytes) give_up("cannot read " + std::to_string(bytes) + " bytes of " + path);
  std::fclose(file);
  return data;
}

float of_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float size = exponent == 31 ? (fraction ? NAN : INFINITY)
             : exponent ? std::ldexp(float(1024 + fraction), exponent - 25) : std::ldexp(float(fraction), -24);
  return bits & 0x8000 ? -size : size;
}

template <class T> T element(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double as_double(const std::string& type, const char* data, size_t i) {
  if (type == "float32") return element<float>(data + 4 * i);
  if (type == "float64") return element<double>(data + 8 * i);
  if (type == "float16") return of_half(element<uint16_t>(data + 2 * i));
  if (type == "int64") return double(element<int64_t>(data + 8 * i));
  if (type == "uint64") return double(element<uint64_t>(data + 8 * i));
  if (type == "int32") return element<int32_t>(data + 4 * i);
  if (type == "uint32") return element<uint32_t>(data + 4 * i);
  if (type == "int16") return element<int16_t>(data + 2 * i);
  if (type == "uint16") return element<uint16_t>(data + 2 * i);
  if (type == "int8") return element<int8_t>(data + i);
  if (type == "uint8" || type == "bool") return element<uint8_t>(data + i);
  give_up("outputs of type " + type + " cannot be compared");
}

size_t elements_of(const model_tensor& tensor) {
  size_t elements = 1;
  for (int i = 0; i < tensor.rank; ++i) elements *= size_t(tensor.shape[i]);
  return elements;
}

// The largest difference over the largest magnitude that is expected; infinite where only one side is a number.
double error_of(const model_tensor& tensor, const std::vector<char>& got, const double* want) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < elements_of(tensor); ++i) {
    double value = as_double(tensor.type, got.data(), i);
    if (value == want[i] || (std::isnan(value) && std::isnan(want[i]))) {
      if (std::isfinite(want[i])) largest = std::fmax(largest, std::fabs(want[i]));
      continue;
    }
    if (!std::isfinite(value) || !std::isfinite(want[i])) return INFINITY;
    largest = std::fmax(largest, std::fabs(want[i]));
    difference = std::fmax(difference, std::fabs(value - want[i]));
  }
  return difference == 0 ? 0 : largest == 0 ? INFINITY : difference / largest;
}

}  // namespace

int main(int count, char** arguments) {
  std::string folder = count > 1 ? arguments[1] : ".";
  double tolerance = count > 2 ? std::atof(arguments[2]) : @TOLERANCE@;
  double patience = count > 3 ? std::atof(arguments[3]) : 10;
  size_t input_bytes = 0, expected_values = 0;
  for (int i = 0; i < MODEL_NUM_INPUTS; ++i) input_bytes += model_inputs[i].bytes;
  for (int i = 0; i < MODEL_NUM_OUTPUTS; ++i) expected_values += elements_of(model_outputs[i]);
  std::vector<char> given = read(folder + "/recorded/inputs.bin", input_bytes);
  std::vector<char> expected = read(folder + "/recorded/outputs.bin", expected_values * sizeof(double));

  model_instance* instance = nullptr;
  must(model_create((folder + "/model.weights").c_str(), &instance));
  cudaStream_t stream;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<void*> inputs, outputs;
  const char* next = given.data();
  for (int i = 0; i < MODEL_NUM_INPUTS; next += model_inputs[i++].bytes) {
    inputs.push_back(nullptr);
    must(cudaMalloc(&inputs.back(), model_inputs[i].bytes));
    must(cudaMemcpy(inputs.back(), next, model_inputs[i].bytes, cudaMemcpyHostToDevice));
  }
  for (int i = 0; i < MODEL_NUM_OUTPUTS; ++i) {
    outputs.push_back(nullptr);
    must(cudaMalloc(&outputs.back(), model_outputs[i].bytes));
  }

  bool right = true;
  for (int check = 0; check < kChecks; ++check) {
    for (int i = 0; i < MODEL_NUM_OUTPUTS; ++i) must(cudaMemset(outputs[size_t(i)], 0xFF, model_outputs[i].bytes));
    must(cudaDeviceSynchronize());
    must(model_run(instance, inputs.data(), outputs.data(), stream));
    finish(instance, stream, patience);
    const double* want = reinterpret_cast<const double*>(expected.data());
    for (int i = 0; i < MODEL_NUM_OUTPUTS; want += elements_of(model_outputs[i++])) {
      std::vector<char> got(model_outputs[i].bytes);
      must(cudaMemcpy(got.data(), outputs[size_t(i)], got.size(), cudaMemcpyDeviceToHost));
      double error = error_of(model_outputs[i], got, want);
      right = right && error <= tolerance;
      std::printf("run %d, output %s: relative error %.1e, %s\n", check + 1, model_outputs[i].name, error,
                  error <= tolerance ? "right" : "WRONG");
    }
  }

  if (right) {
    cudaEvent_t start, end;
    float milliseconds = 0;
    must(cudaEventCreate(&start));
    must(cudaEventCreate(&end));
    must(cudaEventRecord(start, stream));
    for (int i = 0; i < kTimed; ++i) must(model_run(instance, inputs.data(), outputs.data(), stream));
    must(cudaEventRecord(end, stream));
    must(cudaEventSynchronize(end));
    must(cudaEventElapsedTime(&milliseconds, start, end));
    std::printf("%.1f us a run, %d runs back to back\n", milliseconds * 1e3 / kTimed, kTimed);
  }
  model_destroy(instance);
  return right ? 0 : 1;
}
