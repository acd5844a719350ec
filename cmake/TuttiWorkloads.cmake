# tutti_embed_workloads(TARGET): compiles data/workloads/*.csv into TARGET, so that the program has
# them wherever it is installed.
function(tutti_embed_workloads target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/workloads/*.csv)
  list(SORT files)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND entries "    {\"${name}\", R\"workload(${text})workload\"},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/built_in_workloads.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"// Made from data/workloads by cmake/TuttiWorkloads.cmake.
#include \"training/built_in_workloads.h\"

#include <array>

namespace tutti {

std::span<const BuiltInWorkload> BuiltInWorkloadFiles() {
  static constexpr auto kFiles = std::to_array<BuiltInWorkload>({
@entries@  });
  return kFiles;
}

}  // namespace tutti
")
  target_sources(${target} PRIVATE ${source})
endfunction()
