# The mpi room is compiled once for each MPI ("flavour"): openmpi, mpich, smpi (SimGrid).
# Adding a file to src/mpi or a test to tests/mpi needs no change here but its line in
# src/mpi/CMakeLists.txt where it says which ranks a test runs on.
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

# tutti_mpi_engine(FLAVOUR): the static library tutti_mpi_FLAVOUR of everything but dropin/ and programs/.
function(tutti_mpi_engine flavour)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mpi/*.cc)
  list(FILTER sources EXCLUDE REGEX "/src/mpi/(dropin|programs)/")
  if(flavour STREQUAL "smpi")
    list(FILTER sources EXCLUDE REGEX "/hwloc[^/]*$")
  endif()
  add_library(tutti_mpi_${flavour} STATIC ${sources})
  set_target_properties(tutti_mpi_${flavour} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(tutti_mpi_${flavour} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                         ${PROJECT_SOURCE_DIR}/src/mpi)
  target_link_libraries(tutti_mpi_${flavour} PUBLIC tutti_alltoallv tutti_flavour_${flavour}
                                             PRIVATE tutti_warnings)
endfunction()

# tutti_mpi_program(NAME FLAVOUR SOURCE): the program NAME-FLAVOUR (of smpi: for smpirun).
function(tutti_mpi_program name flavour source)
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

# tutti_mpi_test(NAME FLAVOUR RANKS...): tests/mpi/NAME.cc run on each number of ranks, one ctest entry.
function(tutti_mpi_test name flavour)
  tutti_mpi_program(${name} ${flavour} ${PROJECT_SOURCE_DIR}/tests/mpi/${name}.cc)
  add_test(NAME mpi_${name}_${flavour}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/on_ranks.sh ${flavour}
                   $<TARGET_FILE:${name}-${flavour}> ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()
