# How much longer than without a sanitizer a test may take. On two busy cores the longest one, e2e_chat,
# took 42 s without, 48 s under asan and 305 s under tsan.
set(dvt_timeout_factor 1)
if(DVT_SANITIZER STREQUAL "asan")
  set(dvt_timeout_factor 3)
elseif(DVT_SANITIZER STREQUAL "tsan")
  set(dvt_timeout_factor 8)
endif()

# dvt_set_test(e2e_chat LABELS e2e TIMEOUT 240): the seconds are those without a sanitizer.
function(dvt_set_test NAME)
  cmake_parse_arguments(A "" "TIMEOUT" "LABELS" ${ARGN})
  math(EXPR timeout "${A_TIMEOUT} * ${dvt_timeout_factor}")
  set_tests_properties(${NAME} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${timeout})
endfunction()

# GoogleTest read once for all test programs: it is most of what compiling a test costs. Made for an
# executable, since its objects' -fPIE must match the tests'. The preset dev builds without, so a
# test that forgets an #include still shows.
if(DVT_TESTS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tests/precompiled.cpp CONTENT "int main() {}\n")
  add_executable(dvt_test_precompiled EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/tests/precompiled.cpp)
  target_link_libraries(dvt_test_precompiled PRIVATE dvt_flags GTest::gtest Threads::Threads)
  target_compile_options(dvt_test_precompiled PRIVATE $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(dvt_test_precompiled PRIVATE <gtest/gtest.h> <algorithm> <filesystem> <fstream> <functional> <map> <random>)
endif()

# dvt_add_test(NAME core_text_template SOURCES a_test.cpp LINK dovetail::core_template
#              [LABELS unit] [DATA name=path ...])
# One GoogleTest program; ctest lists it under its name. It runs in the source root, so that tests
# name data as tests/data/...
function(dvt_add_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT" "SOURCES;LINK;LABELS;DEFINITIONS" ${ARGN})
  add_executable(${A_NAME}_test ${A_SOURCES})
  target_link_libraries(${A_NAME}_test PRIVATE ${A_LINK} dvt_flags GTest::gtest GTest::gtest_main Threads::Threads)
  # Half of a clean build is tests: a third less of it, and they are as quick.
  target_compile_options(${A_NAME}_test PRIVATE $<$<CONFIG:Release>:-O1>
    # GCC 12 sees std::string's copies leave their bounds where they do not, now that its headers come precompiled.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>)
  target_precompile_headers(${A_NAME}_test REUSE_FROM dvt_test_precompiled)
  target_include_directories(${A_NAME}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${A_NAME}_test PRIVATE DVT_BUILD_DIR="${PROJECT_BINARY_DIR}" ${A_DEFINITIONS})
  set_target_properties(${A_NAME}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${A_NAME} COMMAND ${A_NAME}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  dvt_set_test(${A_NAME} LABELS ${A_LABELS} TIMEOUT ${A_TIMEOUT})
endfunction()
