# tutti_embed(TARGET FOLDER PATTERN HEADER TYPE FUNCTION): compiles the files data/FOLDER/PATTERN into TARGET, as
# `std::span<const TYPE> FUNCTION()` of HEADER, sorted by name, so that the program has them wherever it is
# installed.
function(tutti_embed target folder pattern header type function)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/${folder}/${pattern})
  list(SORT files)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    # A list's separator is none of the text's.
    string(REPLACE ";" "@semicolon@" text "${text}")
    string(APPEND entries "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  set(semicolon "\;")
  string(REPLACE "@semicolon@" ";" entries "${entries}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/built_in_${folder}.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"// Made from data/@folder@ by cmake/TuttiEmbed.cmake.
#include \"@header@\"

#include <array>

namespace tutti {

std::span<const @type@> @function@() {
  static constexpr auto kFiles = std::to_array<@type@>({
@entries@  });
  return kFiles;
}

}  // namespace tutti
")
  target_sources(${target} PRIVATE ${source})
endfunction()

# tutti_embed_file(TARGET FILE HEADER FUNCTION): compiles one file into TARGET, as `std::string_view FUNCTION()` of HEADER.
function(tutti_embed_file target path header function)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${path})
  file(READ ${PROJECT_SOURCE_DIR}/${path} text)
  get_filename_component(name ${path} NAME_WE)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/built_in_${name}.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"// Made from @path@ by cmake/TuttiEmbed.cmake.
#include \"@header@\"

namespace tutti {

std::string_view @function@() {
  static constexpr std::string_view kText = R\"embedded(@text@)embedded\";
  return kText;
}

}  // namespace tutti
")
  target_sources(${target} PRIVATE ${source})
endfunction()
