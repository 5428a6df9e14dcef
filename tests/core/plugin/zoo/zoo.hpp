// What the zoo's plugins and the tests say to each other.
#pragma once

#include <dovetail/abi/base.h>

/// The host's "zoo.trace/1": plugins report when they start and stop.
struct ZooTrace {
  void* self;
  void (*note)(void* self, dvt_str event) DVT_NX;
};

/// A plugin's "dovetail.zoo/1".
struct ZooTable {
  uint32_t struct_size, answer;
};
