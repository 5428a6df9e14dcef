# dovetail_add_plugin(KIND arch NAME qwen3 SOURCES qwen3.cpp [ID org.dovetail.arch.qwen3] [VERSION 0.1.0] [LINK libs...]
#                     [OUTPUT_DIR dir])
# A shared library that exports one symbol, with its manifest in a note. It lands in
# OUTPUT_DIR/KIND/NAME.so; the default is where the program in the build tree looks.
set(DVT_PLUGIN_VERSION_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/plugin.map)

function(dovetail_add_plugin)
  cmake_parse_arguments(A "" "KIND;NAME;ID;VERSION;OUTPUT_DIR" "SOURCES;LINK" ${ARGN})
  if(NOT A_ID)
    set(A_ID org.dovetail.${A_KIND}.${A_NAME})
  endif()
  if(NOT A_VERSION)
    set(A_VERSION ${PROJECT_VERSION})
  endif()
  if(NOT A_OUTPUT_DIR)
    set(A_OUTPUT_DIR ${DVT_PLUGIN_OUTPUT_DIR})
  endif()
  set(target plugin_${A_KIND}_${A_NAME})
  add_library(${target} MODULE ${A_SOURCES})
  target_link_libraries(${target} PRIVATE dovetail::sdk ${A_LINK})
  if(TARGET dvt_flags)
    target_link_libraries(${target} PRIVATE dvt_flags)
  endif()
  target_compile_definitions(${target} PRIVATE DVT_PLUGIN_ID="${A_ID}" DVT_PLUGIN_NAME="${A_NAME}"
                                               DVT_PLUGIN_VERSION="${A_VERSION}")
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${A_NAME} SUFFIX ".so" CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY ${A_OUTPUT_DIR}/${A_KIND}
    LINK_DEPENDS ${DVT_PLUGIN_VERSION_SCRIPT})
  target_link_options(${target} PRIVATE -Wl,--version-script=${DVT_PLUGIN_VERSION_SCRIPT} -Wl,--exclude-libs,ALL
                                        -Wl,-z,now -Wl,-z,relro)
  # A sanitizer's runtime is resolved from the program, so undefined symbols are only checked without one.
  if(NOT DVT_SANITIZER OR DVT_SANITIZER STREQUAL "none")
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
endfunction()
