// Reads memory as fast as the machine can: the yardstick for decode.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// Reads every byte once, in order, and gives the sum modulo 2^64 of the native 8-byte words (the
/// last one filled up with zero bytes): a value that no compiler can leave out.
///
/// shapes    data [n_bytes], any alignment.
/// numerics  every variant gives the same sum.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n_bytes == 0 gives 0.
///
/// A row of the CPU table has it twice: read_stream leaves the fetching to the processor, and
/// read_stream_ahead asks for lines 2 KiB early. Which is faster depends on the machine; the better
/// of the two is the honest yardstick.
using ReadStreamFn = uint64_t(const void* data, int64_t n_bytes);

namespace ref {
ReadStreamFn read_stream;
}  // namespace ref

}  // namespace dovetail::kernels
