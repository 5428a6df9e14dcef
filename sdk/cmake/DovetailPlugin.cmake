# dovetail_add_plugin(KIND arch NAME qwen3 SOURCES qwen3.cpp [ID org.dovetail.arch.qwen3] [VERSION 0.1.0] [LINK libs...]
#                     [OUTPUT_DIR dir])
# A shared library that exports one symbol, with its manifest in a note. It lands in
# OUTPUT_DIR/KIND/NAME.so. Without OUTPUT_DIR that is where the program in the build tree looks
# (in a project of its own: plugins/ in its build tree), and `cmake --install` puts it where an
# installed program of the same prefix looks.
function(dovetail_add_plugin)
  cmake_parse_arguments(A "" "KIND;NAME;ID;VERSION;OUTPUT_DIR" "SOURCES;LINK" ${ARGN})
  if(NOT A_ID)
    set(A_ID org.dovetail.${A_KIND}.${A_NAME})
  endif()
  if(NOT A_VERSION)
    set(A_VERSION ${PROJECT_VERSION})
  endif()
  set(version_script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  set(target plugin_${A_KIND}_${A_NAME})
  set(is_installed FALSE)
  if(NOT A_OUTPUT_DIR)
    set(A_OUTPUT_DIR ${DVT_PLUGIN_OUTPUT_DIR})
    if(NOT A_OUTPUT_DIR)
      set(A_OUTPUT_DIR ${PROJECT_BINARY_DIR}/plugins)
    endif()
    set(is_installed TRUE)
  endif()
  add_library(${target} MODULE ${A_SOURCES})
  target_link_libraries(${target} PRIVATE dovetail::sdk ${A_LINK})
  if(TARGET dvt_flags)
    target_link_libraries(${target} PRIVATE dvt_flags)
  else() # the package says how the program was built: it takes only plugins of its own sanitizer
    target_compile_options(${target} PRIVATE ${dvt_sanitize})
    target_link_options(${target} PRIVATE ${dvt_sanitize})
  endif()
  target_compile_definitions(${target} PRIVATE DVT_PLUGIN_ID="${A_ID}" DVT_PLUGIN_NAME="${A_NAME}"
                                               DVT_PLUGIN_VERSION="${A_VERSION}")
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${A_NAME} SUFFIX ".so" CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY ${A_OUTPUT_DIR}/${A_KIND}
    LINK_DEPENDS ${version_script})
  target_link_options(${target} PRIVATE -Wl,--version-script=${version_script} -Wl,--exclude-libs,ALL
                                        -Wl,-z,now -Wl,-z,relro)
  # A sanitizer's runtime is resolved from the program, so undefined symbols are only checked without one.
  if((NOT DVT_SANITIZER OR DVT_SANITIZER STREQUAL "none") AND NOT DVT_FUZZ)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  if(is_installed)
    set_property(GLOBAL APPEND PROPERTY DVT_PLUGINS ${target})
    install(TARGETS ${target} LIBRARY DESTINATION lib/dovetail/plugins/${A_KIND})
  endif()
endfunction()
