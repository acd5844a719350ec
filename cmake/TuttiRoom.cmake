# tutti_room(NAME DEPENDS rooms... LIBRARIES external...): the library tutti_NAME from src/NAME,
# its tests from tests/unit/NAME (one binary, one ctest entry), its benchmarks from bench/NAME and
# its fuzzers from fuzz/NAME_*_fuzz.cc. Adding a file needs no change here.
function(tutti_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  add_library(tutti_${name} STATIC ${sources})
  add_library(tutti::${name} ALIAS tutti_${name})
  set_target_properties(tutti_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(
    tutti_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src/${name} ${PROJECT_SOURCE_DIR}/src)
  foreach(dep ${ROOM_DEPENDS})
    target_link_libraries(tutti_${name} PUBLIC tutti_${dep})
  endforeach()
  target_link_libraries(tutti_${name} PRIVATE tutti_warnings ${ROOM_LIBRARIES})
  install(TARGETS tutti_${name} EXPORT tuttiTargets ARCHIVE DESTINATION lib)

  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/${name}/*_test.cc)
  if(tests AND TUTTI_BUILD_TESTS)
    add_executable(${name}_test ${tests})
    target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/src/${name}
                                                    ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name}_test PRIVATE tutti_${name} tutti_test_support tutti_warnings
                                               GTest::gtest_main GTest::gmock fmt::fmt)
    add_test(NAME ${name} COMMAND ${name}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "GTEST_FILTER=-*Slow.*")
    # Tests too long for the quick run stand in suites whose names end in Slow.
    set(has_slow OFF)
    foreach(test ${tests})
      file(STRINGS ${test} slow_lines REGEX "^TEST.*Slow,")
      if(slow_lines)
        set(has_slow ON)
      endif()
    endforeach()
    if(has_slow)
      add_test(NAME ${name}_slow COMMAND ${name}_test --gtest_filter=*Slow.*
               WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      set_tests_properties(${name}_slow PROPERTIES LABELS slow)
    endif()
  endif()

  file(GLOB benches CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/${name}/*_bench.cc)
  if(TUTTI_BUILD_BENCH)
    foreach(bench ${benches})
      get_filename_component(target ${bench} NAME_WE)
      add_executable(${target} ${bench})
      target_link_libraries(${target} PRIVATE tutti_all tutti_warnings benchmark::benchmark
                                              fmt::fmt)
    endforeach()
  endif()

  file(GLOB fuzzers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/${name}_*_fuzz.cc)
  foreach(fuzzer ${fuzzers})
    get_filename_component(target ${fuzzer} NAME_WE)
    if(TUTTI_FUZZ)
      add_executable(${target} ${fuzzer})
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    elseif(TUTTI_BUILD_TESTS)
      # Without libFuzzer: replays the corpus.
      add_executable(${target} ${fuzzer} ${PROJECT_SOURCE_DIR}/fuzz/replay_main.cc)
      add_test(NAME ${target}_corpus COMMAND ${target} ${PROJECT_SOURCE_DIR}/fuzz/corpus/${target})
    endif()
    if(TARGET ${target})
      target_link_libraries(${target} PRIVATE tutti_${name} tutti_warnings fmt::fmt)
    endif()
  endforeach()
endfunction()
