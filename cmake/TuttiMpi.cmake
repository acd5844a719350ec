# The rooms mpi and mpi_preload are compiled once for each MPI ("flavour"): openmpi, mpich, smpi (SimGrid).
# Adding a file to src/mpi or a test to tests/mpi needs no change here but its line in
# src/mpi/CMakeLists.txt where it says which ranks a test runs on.
# Of what is asked for below for another flavour than these nothing is made. Under sanitizers only Open MPI's
# runs: SMPI switches stacks and MPICH's transport maps memory of its own.
set(TUTTI_MPI_FLAVOURS openmpi mpich smpi CACHE STRING "MPI libraries to compile for")
pkg_check_modules(openmpi REQUIRED IMPORTED_TARGET ompi-c)
pkg_check_modules(mpich REQUIRED IMPORTED_TARGET mpich)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
find_path(SMPI_INCLUDE smpi/mpi.h REQUIRED)
find_library(SIMGRID_LIBRARY simgrid REQUIRED)

add_library(tutti_flavour_openmpi INTERFACE)
target_link_libraries(tutti_flavour_openmpi INTERFACE PkgConfig::openmpi PkgConfig::hwloc)
target_compile_definitions(tutti_flavour_openmpi INTERFACE OMPI_SKIP_MPICXX TUTTI_MPI_FLAVOUR="openmpi")

add_library(tutti_flavour_mpich INTERFACE)
target_link_libraries(tutti_flavour_mpich INTERFACE PkgConfig::mpich PkgConfig::hwloc)
target_compile_definitions(tutti_flavour_mpich INTERFACE MPICH_SKIP_MPICXX TUTTI_MPI_FLAVOUR="mpich")

# smpirun loads programs as shared libraries, one private copy of their globals a rank.
add_library(tutti_flavour_smpi INTERFACE)
target_include_directories(tutti_flavour_smpi SYSTEM INTERFACE ${SMPI_INCLUDE}/smpi)
target_link_libraries(tutti_flavour_smpi INTERFACE ${SIMGRID_LIBRARY})
target_compile_definitions(tutti_flavour_smpi INTERFACE TUTTI_MPI_SMPI TUTTI_MPI_FLAVOUR="smpi")

# tutti_mpi_engine(FLAVOUR): the static library tutti_mpi_FLAVOUR of everything but programs/.
function(tutti_mpi_engine flavour)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mpi/*.cc)
  list(FILTER sources EXCLUDE REGEX "/src/mpi/programs/")
  if(flavour STREQUAL "smpi")
    list(FILTER sources EXCLUDE REGEX "/hwloc[^/]*$")
  endif()
  add_library(tutti_mpi_${flavour} STATIC ${sources})
  if(NOT flavour STREQUAL "smpi")  # whose headers define macros
    tutti_unity(tutti_mpi_${flavour})
  endif()
  set_target_properties(tutti_mpi_${flavour} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(tutti_mpi_${flavour} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                         ${PROJECT_SOURCE_DIR}/src/mpi)
  target_link_libraries(tutti_mpi_${flavour} PUBLIC tutti_tune tutti_flavour_${flavour}
                                             PRIVATE tutti_warnings)
  # For programs that call algorithms by name (tutti/mpi/tutti_mpi.h).
  if(NOT flavour STREQUAL "smpi")
    install(TARGETS tutti_mpi_${flavour} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endfunction()

# tutti_mpi_program(NAME FLAVOUR SOURCE): the program NAME-FLAVOUR (of smpi: for smpirun).
function(tutti_mpi_program name flavour source)
  if(NOT flavour IN_LIST TUTTI_MPI_FLAVOURS)
    return()
  endif()
  set(target ${name}-${flavour})
  if(flavour STREQUAL "smpi")
    # smpirun loads it with dlopen and calls its main.
    add_library(${target} SHARED ${source})
    set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX "" LIBRARY_OUTPUT_DIRECTORY
                                               ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
    target_compile_options(${target} PRIVATE -include smpi/smpi_helpers.h)
  else()
    add_executable(${target} ${source})
  endif()
  target_link_libraries(${target} PRIVATE tutti_mpi_${flavour} tutti_warnings)
endfunction()

# The ctest entry of a test program. Under sanitizers without the search for leaks: MPI libraries leak.
function(tutti_mpi_add_test name flavour)
  add_test(NAME mpi_${name}_${flavour}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/on_ranks.sh ${flavour}
                   $<TARGET_FILE:${name}-${flavour}> ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(TUTTI_SANITIZE)
    set_tests_properties(mpi_${name}_${flavour} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
  endif()
endfunction()

# tutti_mpi_test(NAME FLAVOUR RANKS...): tests/mpi/NAME.cc run on each number of ranks, one ctest entry.
function(tutti_mpi_test name flavour)
  if(NOT flavour IN_LIST TUTTI_MPI_FLAVOURS)
    return()
  endif()
  tutti_mpi_program(${name} ${flavour} ${PROJECT_SOURCE_DIR}/tests/mpi/${name}.cc)
  target_compile_options(${name}-${flavour} PRIVATE $<$<CONFIG:Release>:-O1>)
  tutti_mpi_add_test(${name} ${flavour} ${ARGN})
endfunction()

# tutti_mpi_c_test(NAME FLAVOUR RANKS...): tests/mpi/NAME.c, compiled as C by that MPI's own compiler.
function(tutti_mpi_c_test name flavour)
  if(NOT flavour IN_LIST TUTTI_MPI_FLAVOURS)
    return()
  endif()
  set(source ${PROJECT_SOURCE_DIR}/tests/mpi/${name}.c)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}-${flavour}.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND mpicc.${flavour} -std=c11 -Wall -Wextra -Wconversion -Werror -I${PROJECT_SOURCE_DIR}/include -c
            ${source} -o ${object}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/include/tutti/mpi/tutti_mpi.h)
  add_executable(${name}-${flavour} ${object})
  set_target_properties(${name}-${flavour} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name}-${flavour} PRIVATE tutti_mpi_${flavour})
  tutti_mpi_add_test(${name} ${flavour} ${ARGN})
endfunction()

# tutti_mpi_nodes_test(NAME NODES...): that test program over several nodes that tests/mpi/on_nodes.sh
# makes of this machine; skipped where the user may not make them.
function(tutti_mpi_nodes_test name)
  if(TUTTI_SANITIZE)
    return()
  endif()
  list(JOIN ARGN " " nodes)
  add_test(NAME mpi_${name}_nodes
           COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/on_nodes.sh openmpi ${nodes}
                   $<TARGET_FILE:${name}-openmpi>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(mpi_${name}_nodes PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# tutti_mpi_dropin(FLAVOUR NAME PREFIX): the library that programs preload, NAME.so, and its engine,
# NAME_engine.so, which it loads from beside itself. PREFIX: of the persistent all-to-alls in this MPI.
# Neither needs an MPI library or the C++ library: they go into programs built with others.
function(tutti_mpi_dropin flavour name prefix)
  if(NOT flavour IN_LIST TUTTI_MPI_FLAVOURS)
    return()
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/src/mpi_preload)
  set(link_options -static-libgcc -static-libstdc++ -Wl,--as-needed)

  file(GLOB sources CONFIGURE_DEPENDS ${folder}/preload/*.cc)
  if(NOT flavour STREQUAL "openmpi")
    list(FILTER sources EXCLUDE REGEX "_openmpi[.]cc$")
  endif()
  string(TOUPPER ${flavour} family)
  add_library(tutti_mpi_preload_${flavour} SHARED ${sources})
  target_include_directories(tutti_mpi_preload_${flavour} PRIVATE ${folder})
  target_compile_definitions(
    tutti_mpi_preload_${flavour}
    PRIVATE TUTTI_MPI_${family} TUTTI_LIBRARY="${name}.so" TUTTI_ENGINE="${name}_engine.so"
            TUTTI_PERSISTENT_PREFIX="${prefix}")
  target_compile_options(tutti_mpi_preload_${flavour} PRIVATE -fno-exceptions -fno-rtti)
  target_link_options(tutti_mpi_preload_${flavour} PRIVATE ${link_options}
                      -Wl,--version-script=${folder}/preload/exports.map)
  target_link_libraries(tutti_mpi_preload_${flavour} PRIVATE tutti_warnings)
  set_target_properties(tutti_mpi_preload_${flavour} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
                        LINK_DEPENDS ${folder}/preload/exports.map)

  # Compiled once, for the library and for its test. Linked without the MPI library: its symbols are those of the MPI
  # that the program brings.
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/engine/*.cc)
  set(objects tutti_mpi_engine_objects_${flavour})
  add_library(${objects} OBJECT ${sources})
  tutti_unity(${objects})
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(what INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS)
    set_property(TARGET ${objects}
                 PROPERTY ${what} $<TARGET_PROPERTY:tutti_mpi_${flavour},INTERFACE_${what}>)
  endforeach()
  target_include_directories(${objects} PRIVATE ${folder})
  target_link_libraries(${objects} PRIVATE tutti_tune PkgConfig::hwloc tutti_warnings)
  add_library(tutti_mpi_engine_${flavour} SHARED $<TARGET_OBJECTS:${objects}>)
  add_dependencies(tutti_mpi_engine_${flavour} tutti_mpi_${flavour})
  target_link_options(tutti_mpi_engine_${flavour} PRIVATE ${link_options}
                      -Wl,--version-script=${folder}/engine/exports.map)
  target_link_libraries(tutti_mpi_engine_${flavour} PRIVATE $<TARGET_FILE:tutti_mpi_${flavour}>
                                                            tutti_tune PkgConfig::hwloc
                                                            tutti_warnings)
  set_target_properties(tutti_mpi_engine_${flavour} PROPERTIES PREFIX "" OUTPUT_NAME ${name}_engine
                        LINK_DEPENDS ${folder}/engine/exports.map)
  add_dependencies(tutti_mpi_preload_${flavour} tutti_mpi_engine_${flavour})

  set_target_properties(tutti_mpi_preload_${flavour} tutti_mpi_engine_${flavour}
                        PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS tutti_mpi_preload_${flavour} tutti_mpi_engine_${flavour} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# tutti_mpi_dropin_test(FLAVOUR NAME PREFIX): programs that know nothing of Tutti, in C and Fortran, built by
# that MPI's own compilers and run under NAME.so. No instrumented library can be preloaded into them.
function(tutti_mpi_dropin_test flavour name prefix)
  if(NOT flavour IN_LIST TUTTI_MPI_FLAVOURS)
    return()
  endif()
  if(TUTTI_SANITIZE)
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/dropin/${flavour})
  file(MAKE_DIRECTORY ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/mpi/dropin/*.c
                                      ${PROJECT_SOURCE_DIR}/tests/mpi/dropin/*.f90)
  set(programs)
  foreach(source ${sources})
    cmake_path(GET source STEM program)
    set(compiler mpicc.${flavour} -Wall -Werror)
    if(source MATCHES "f90$")
      # Modules that the compiler writes stay apart; older interfaces know no choice arguments.
      set(compiler mpif90.${flavour} -cpp -DALLTOALLV_INIT=${prefix}Alltoallv_init -w
                   -fallow-argument-mismatch -J${folder})
    endif()
    set(libraries -ldl -pthread)
    set(needs)
    if(program STREQUAL "named")
      set(libraries -I${PROJECT_SOURCE_DIR}/include -L${CMAKE_BINARY_DIR}/lib -l:${name}.so
                    -Wl,-rpath,${CMAKE_BINARY_DIR}/lib)
      set(needs tutti_mpi_preload_${flavour})
    elseif(program STREQUAL "open_locally")
      set(compiler gcc -Wall -Werror)
    elseif(program STREQUAL "profiler")
      list(APPEND compiler -shared -fPIC)
    endif()
    add_custom_command(OUTPUT ${folder}/${program} DEPENDS ${source} ${needs}
                       COMMAND ${compiler} -O1 -o ${folder}/${program} ${source} ${libraries})
    list(APPEND programs ${folder}/${program})
  endforeach()
  set(module ${PROJECT_SOURCE_DIR}/tests/mpi/dropin/exchange.c)
  add_custom_command(OUTPUT ${folder}/exchange_module.so DEPENDS ${module}
                     COMMAND mpicc.${flavour} -DAS_MODULE -shared -fPIC -O1
                             -o ${folder}/exchange_module.so ${module})
  add_custom_target(dropin_test-${flavour} ALL DEPENDS ${programs} ${folder}/exchange_module.so)
  add_dependencies(dropin_test-${flavour} tutti_mpi_preload_${flavour})

  add_test(NAME mpi_dropin_${flavour}
           COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/mpi/dropin_test.py
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(
    mpi_dropin_${flavour}
    PROPERTIES COST 150
               ENVIRONMENT
               "TUTTI_TEST_MPI=${flavour};TUTTI_TEST_PROGRAMS=${CMAKE_BINARY_DIR}/dropin;TUTTI_TEST_LIBRARIES=${CMAKE_BINARY_DIR}/lib")
endfunction()

# tutti_mpi_differential(FLAVOUR): tests/mpi/differential/, linked before the MPI library against what
# programs preload, so that it is intercepted as any program is, also where instruments let nothing be preloaded.
# A short run is a test of the suite; a hundred thousand calls are .ci/run differential.
function(tutti_mpi_differential flavour)
  if(NOT flavour IN_LIST TUTTI_MPI_FLAVOURS)
    return()
  endif()
  set(target differential-${flavour})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/mpi/differential/*.cc)
  add_executable(${target} ${sources})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE tutti_mpi_preload_${flavour} tutti_flavour_${flavour} tutti_warnings)
  if(TUTTI_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Interposed functions have the ABI of the MPI library's, with handles of their own types.
    target_compile_options(${target} PRIVATE -fno-sanitize=function)
  endif()
  set(run ${PROJECT_SOURCE_DIR}/tests/mpi/differential.sh ${flavour} $<TARGET_FILE:${target}>)
  add_test(NAME mpi_differential_${flavour} COMMAND ${run} 2000)
  if(flavour STREQUAL openmpi AND NOT TUTTI_SANITIZE)
    add_test(NAME mpi_differential_nodes
             COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/on_nodes.sh openmpi "2,3 3,1,2:cyclic" env TUTTI_ALLREDUCE=shared
                     TUTTI_BCAST=shared TUTTI_BARRIER=shared $<TARGET_FILE:${target}> --others --seed=3 --calls=100)
    set_tests_properties(mpi_differential_nodes PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endfunction()
