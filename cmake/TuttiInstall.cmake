# What `cmake --install` puts where: headers, libraries, find_package(tutti), pkg-config, man pages and shell
# completion, all in the folders of GNUInstallDirs. Needs the rooms of TuttiRoom.cmake.
#
# As a rule a static library for each room. With BUILD_SHARED_LIBS=ON one libtutti.so of all rooms instead, of
# which users need nothing but the header-only tl::expected; programs of this project that reach into rooms
# (tests, tools) still link those.
include(CMakePackageConfigHelpers)

get_property(tutti_rooms GLOBAL PROPERTY TUTTI_ROOMS)
list(TRANSFORM tutti_rooms PREPEND tutti_ OUTPUT_VARIABLE tutti_room_libraries)

add_library(tutti_all INTERFACE)
add_library(tutti::tutti ALIAS tutti_all)
if(BUILD_SHARED_LIBS)
  get_property(externals GLOBAL PROPERTY TUTTI_EXTERNALS)
  list(REMOVE_DUPLICATES externals)
  list(TRANSFORM tutti_room_libraries REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(tutti_shared SHARED ${objects})
  # Until 1.0 each minor version is another interface.
  set_target_properties(
    tutti_shared PROPERTIES OUTPUT_NAME tutti EXPORT_NAME tutti LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                            SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(tutti_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(tutti_shared INTERFACE cxx_std_20)
  target_link_libraries(tutti_shared PUBLIC tl::expected PRIVATE ${externals} Threads::Threads)
  # Symbols that nobody defines would show only in the programs of others.
  if(NOT TUTTI_SANITIZE)
    target_link_options(tutti_shared PRIVATE -Wl,--no-undefined)
  endif()
  target_link_libraries(tutti_all INTERFACE tutti_shared)
  install(TARGETS tutti_shared EXPORT tuttiTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(TUTTI_MPI)
    # Programs that call all-to-all-v by name link these beside libtutti_mpi_*.a.
    install(FILES $<TARGET_FILE:tutti_tune> $<TARGET_FILE:tutti_alltoallv> $<TARGET_FILE:tutti_base>
            DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
else()
  target_link_libraries(tutti_all INTERFACE tutti_import tutti_design tutti_verify tutti_page tutti_advise tutti_training tutti_calibrate tutti_service tutti_controller tutti_launch tutti_tune tutti_control)
  set_target_properties(tutti_all PROPERTIES EXPORT_NAME tutti)
  install(TARGETS tutti_all tutti_warnings ${tutti_room_libraries} EXPORT tuttiTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

set(tutti_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
install(DIRECTORY include/tutti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tuttiTargets NAMESPACE tutti:: DESTINATION ${tutti_cmake_folder})
configure_package_config_file(cmake/tuttiConfig.cmake.in ${CMAKE_BINARY_DIR}/tuttiConfig.cmake
                              INSTALL_DESTINATION ${tutti_cmake_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tuttiConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tuttiConfig.cmake ${CMAKE_BINARY_DIR}/tuttiConfigVersion.cmake
        DESTINATION ${tutti_cmake_folder})

# tutti.pc: static libraries need those they use in every link, from the user's to the used.
if(BUILD_SHARED_LIBS)
  set(tutti_pc_libraries -ltutti)
  set(tutti_pc_requires "")
else()
  list(REVERSE tutti_room_libraries)
  list(TRANSFORM tutti_room_libraries PREPEND -l OUTPUT_VARIABLE tutti_pc_libraries)
  list(JOIN tutti_pc_libraries " " tutti_pc_libraries)
  string(APPEND tutti_pc_libraries " -pthread")
  set(tutti_pc_requires "cbc clp fmt gmp libzstd pugixml sqlite3 tbb yaml-0.1 zlib")
  if(TUTTI_TLS)
    string(APPEND tutti_pc_requires " openssl")
  endif()
endif()
# Relative, so that a folder that was moved, or chosen by `cmake --install --prefix`, is right.
cmake_path(SET tutti_pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${tutti_pc_folder}
           OUTPUT_VARIABLE tutti_pc_prefix)
configure_file(cmake/tutti.pc.in ${CMAKE_BINARY_DIR}/tutti.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tutti.pc DESTINATION ${tutti_pc_folder})

# Made by the command itself while it is installed: the build does not wait for them.
if(NOT CMAKE_CROSSCOMPILING)
  install(
    CODE "
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/docs)
    execute_process(COMMAND $<TARGET_FILE:tutti> docs man -o ${CMAKE_BINARY_DIR}/docs/man1
                    COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND $<TARGET_FILE:tutti> docs completion
                    OUTPUT_FILE ${CMAKE_BINARY_DIR}/docs/tutti COMMAND_ERROR_IS_FATAL ANY)")
  install(DIRECTORY ${CMAKE_BINARY_DIR}/docs/man1 DESTINATION ${CMAKE_INSTALL_MANDIR}
          FILES_MATCHING PATTERN "*.1")
  install(FILES ${CMAKE_BINARY_DIR}/docs/tutti
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()

# Units of systemd that start the daemon from where it is installed, and what its operators' tools read.
file(READ ${PROJECT_SOURCE_DIR}/examples/service/tuttid.service tutti_unit)
string(REPLACE /usr/bin/tuttid ${CMAKE_INSTALL_FULL_BINDIR}/tuttid tutti_unit "${tutti_unit}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/units/tuttid.service CONTENT "${tutti_unit}" @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/units/tuttid.service examples/service/tuttid.socket
              examples/service/tuttid-admin.socket DESTINATION lib/systemd/system)
install(FILES examples/service/tuttid.json examples/service/grafana.json examples/service/prometheus.yml
        DESTINATION ${CMAKE_INSTALL_DATADIR}/tutti/service)
