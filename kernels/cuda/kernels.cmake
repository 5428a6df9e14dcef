# The CUDA kernels: built where nvcc is found, for each GPU that is named below. What ptxas says of their registers
# and shared memory stays beside the objects, for the test kernels_cuda_resources.
set(dvt_cuda_kernels argmax attend decode_gate_up decode_linear decode_qkv gather_rows kv_cache linear pointwise rms_norm rope softmax take_tokens)
set(sources ${dvt_cuda_kernels})
list(TRANSFORM sources REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/cuda/\\1.cu")
set_property(GLOBAL PROPERTY DVT_CUDA_KERNELS ${sources})

if(NOT DVT_CUDA OR DVT_KERNELS_ONLY OR DVT_FUZZ)
  return()
endif()
find_package(CUDAToolkit 12.4 QUIET)
if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE OR NOT TARGET CUDA::cudart_static)
  message(STATUS "The CUDA backend is left out: no CUDA toolkit of 12.4 or newer (nvcc on the path, libcudart_static.a)")
  return()
endif()

# Code for A100, for L4 and RTX 4090, for H100 and H200; others translate the PTX when they load it.
set(targets -gencode arch=compute_80,code=sm_80 -gencode arch=compute_89,code=sm_89
            -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_90,code=compute_90)
set_property(GLOBAL PROPERTY DVT_NVCC ${CMAKE_CXX_COMPILER_LAUNCHER} ${CUDAToolkit_NVCC_EXECUTABLE} ${targets})

# dvt_cuda_object(SOURCE.cu VARIABLE [FLAG...]): compiles it; the variable gets the object's name.
function(dvt_cuda_object SOURCE VARIABLE)
  get_filename_component(name ${SOURCE} NAME_WE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.o)
  get_property(nvcc GLOBAL PROPERTY DVT_NVCC)
  set(compile ${PROJECT_SOURCE_DIR}/kernels/cuda/compile.sh)
  add_custom_command(OUTPUT ${object} DEPENDS ${SOURCE} ${compile}
    BYPRODUCTS ${object}.ptxas DEPFILE ${object}.d COMMENT "Building CUDA source ${name}" VERBATIM
    COMMAND ${compile} ${object} ${nvcc}
      -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr -Xcompiler=-fPIC,-fvisibility=hidden -Xptxas=-v
      ${ARGN} -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/kernels/include -MD -MT ${object} -MF ${object}.d
      -c ${SOURCE} -o ${object})
  set(${VARIABLE} ${object} PARENT_SCOPE)
endfunction()
set(objects)
foreach(kernel IN LISTS sources)
  dvt_cuda_object(${kernel} object)
  list(APPEND objects ${object})
endforeach()
add_library(dvt_kernels_cuda STATIC ${objects})
add_library(dovetail::kernels_cuda ALIAS dvt_kernels_cuda)
set_target_properties(dvt_kernels_cuda PROPERTIES LINKER_LANGUAGE CXX)
target_include_directories(dvt_kernels_cuda PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
target_link_libraries(dvt_kernels_cuda PUBLIC CUDA::cudart_static)
