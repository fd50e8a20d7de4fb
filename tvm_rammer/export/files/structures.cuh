// ---- The plan as data ------------------------------------------------------------------------------------------------

namespace {

// Where a pointer comes from: 0 is the instance's own memory, then come the inputs, then the outputs.
struct Address {
  int where;
  size_t offset;
};

// A table of the plan that is copied to the instance's memory once.
struct Table {
  const int32_t* data;
  size_t bytes, offset;
};

// A wait of a lane: in its row so many, for so many arrivals of an event, so many steps ago.
struct Wait {
  int veu, row, event, arrivals, back;
};

// A persistent kernel: its counters, how many blocks and steps it has, and its waits, lane by lane. Counters only grow, so
// they are cleared when the instance is made, and never again.
struct Program {
  const char* name;
  size_t offset, bytes;
  int blocks, steps;
  std::vector<Wait> waits;
};

// A launch whose parameters are pointers: addresses[first] and those that follow it.
struct Launch {
  const void* kernel;
  const char* name;
  dim3 grid, block;
  size_t shared_bytes;
  bool cooperative;  // all blocks must be resident at once, since they wait for one another
  int first, count;
};

// An output that no kernel writes to its own place.
struct Copy {
  Address from;
  int output;
};

