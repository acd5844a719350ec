# tutti_embed_platforms(TARGET): compiles data/platforms/*.xml into TARGET, so that the program has
# them wherever it is installed.
function(tutti_embed_platforms target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/platforms/*.xml)
  list(SORT files)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    # A list's separator is none of the text's.
    string(REPLACE ";" "@semicolon@" text "${text}")
    string(APPEND entries "    {\"${name}\", R\"platform(${text})platform\"},\n")
  endforeach()
  set(semicolon "\;")
  string(REPLACE "@semicolon@" ";" entries "${entries}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/built_in_platforms.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"// Made from data/platforms by cmake/TuttiPlatforms.cmake.
#include \"built_in_platforms.h\"

#include <array>

namespace tutti {

std::span<const BuiltInPlatform> BuiltInPlatformFiles() {
  static constexpr auto kFiles = std::to_array<BuiltInPlatform>({
@entries@  });
  return kFiles;
}

}  // namespace tutti
")
  target_sources(${target} PRIVATE ${source})
endfunction()
