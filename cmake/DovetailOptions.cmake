# Options of the build, the warnings of our own targets, sanitizers.
option(DVT_TESTS "Build the test suite" ON)
option(DVT_BENCHMARKS "Build the kernel and tokenizer benchmarks" ON)
option(DVT_KERNELS_ONLY "Build kernels/ and its tests alone, which takes no library: for other processors" OFF)
option(DVT_CUDA "Build the CUDA backend where a CUDA toolkit of 12.4 or newer is found" ON)
option(DVT_ASSERTIONS "Check DVT_ASSERT in every build type" OFF)
option(DVT_WERROR "Treat warnings of our own code as errors" OFF)
option(DVT_FUZZ "Build the fuzz targets in tests/fuzz (clang alone); takes its own sanitizers" OFF)
set(DVT_SANITIZER "none" CACHE STRING "none, asan (address + undefined) or tsan")
set_property(CACHE DVT_SANITIZER PROPERTY STRINGS none asan tsan)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# The installed layout, in the build tree too: a program finds its plugins relative to itself.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(DVT_PLUGIN_OUTPUT_DIR ${PROJECT_BINARY_DIR}/lib/dovetail/plugins)

# Links the flags that every target of ours has.
add_library(dvt_flags INTERFACE)
target_compile_options(dvt_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers $<$<BOOL:${DVT_WERROR}>:-Werror>
  # GCC 12 sees overlaps in std::string's own copies where there are none.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_compile_definitions(dvt_flags INTERFACE $<$<BOOL:${DVT_ASSERTIONS}>:DVT_ASSERTIONS=1>)
if(DVT_SANITIZER STREQUAL "asan")
  set(dvt_sanitize -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
elseif(DVT_SANITIZER STREQUAL "tsan")
  set(dvt_sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT DVT_SANITIZER STREQUAL "none")
  message(FATAL_ERROR "DVT_SANITIZER is \"${DVT_SANITIZER}\", expected none, asan or tsan")
endif()
if(DVT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT DVT_SANITIZER STREQUAL "none")
    message(FATAL_ERROR "DVT_FUZZ with ${CMAKE_CXX_COMPILER_ID} and DVT_SANITIZER \"${DVT_SANITIZER}\", expected Clang "
                        "and none: use cmake --preset fuzz")
  endif()
  # Every object reports its branches to libFuzzer; the targets alone link its main().
  # Without its measure of the stack, a static thread-local variable that no plugin may have.
  set(dvt_sanitize -fsanitize=fuzzer-no-link -fno-sanitize-coverage=stack-depth -fsanitize=address,undefined
      -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
endif()
target_compile_options(dvt_flags INTERFACE ${dvt_sanitize})
target_link_options(dvt_flags INTERFACE ${dvt_sanitize})
