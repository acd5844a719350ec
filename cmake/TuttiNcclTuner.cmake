# The tuner plug-in that NCCL loads (NCCL_TUNER_PLUGIN=tutti): the room nccl_tuner and nothing else. Its C++ library
# is linked into it, so that it does not meet another one in the program that loads it.
set_target_properties(tutti_nccl_tuner PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
add_library(nccl_tuner_plugin MODULE $<TARGET_OBJECTS:tutti_nccl_tuner>)
set_target_properties(nccl_tuner_plugin PROPERTIES OUTPUT_NAME nccl-tuner-tutti LINKER_LANGUAGE CXX)
if(NOT TUTTI_SANITIZE)
  target_link_options(nccl_tuner_plugin PRIVATE -static-libstdc++ -static-libgcc -Wl,--no-undefined
                                                -Wl,--exclude-libs,ALL)
endif()
install(TARGETS nccl_tuner_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET nccl_tuner_test)
  add_dependencies(nccl_tuner_test nccl_tuner_plugin)
  target_compile_definitions(nccl_tuner_test PRIVATE TUTTI_NCCL_TUNER="$<TARGET_FILE:nccl_tuner_plugin>")
  target_link_libraries(nccl_tuner_test PRIVATE ${CMAKE_DL_LIBS})
endif()
if(TARGET nccl_tuner_bench)
  target_link_libraries(nccl_tuner_bench PRIVATE tutti_nccl_tuner)
  target_include_directories(nccl_tuner_bench PRIVATE src)
endif()
if(TARGET advise_test)
  # What `tutti rules` writes is read by who reads it.
  target_link_libraries(advise_test PRIVATE tutti_nccl_tuner)
endif()
