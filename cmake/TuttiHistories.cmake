# histories_test: daemons, ranks and a controller in one process and simulated time (tests/histories, docs/adr/0105). The calls by
# which they meet the system are the simulation's: the linker gives it those of this program's objects.
set(tutti_simulated_calls
    accept4 bind close connect epoll_create1 epoll_ctl epoll_wait eventfd fcntl getifaddrs getpeername getrandom getsockname getsockopt
    listen poll read recv send sendmsg setsockopt shutdown socket write _ZNSt6chrono3_V212steady_clock3nowEv
    _ZNSt6chrono3_V212system_clock3nowEv)
file(GLOB histories CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/histories/*.cc)
add_executable(histories_test ${histories})
tutti_unity(histories_test)
foreach(folder service communicator runtime)
  target_include_directories(histories_test PRIVATE ${PROJECT_SOURCE_DIR}/src/${folder})
endforeach()
target_include_directories(histories_test PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(histories_test PRIVATE tutti_controller tutti_test_support tutti_warnings GTest::gtest_main
                                             fmt::fmt nlohmann_json::nlohmann_json)
target_compile_options(histories_test PRIVATE $<$<CONFIG:Release>:-O1> ${tutti_test_instruments})
foreach(call ${tutti_simulated_calls})
  target_link_options(histories_test PRIVATE LINKER:--wrap=${call})
endforeach()
add_test(NAME histories COMMAND histories_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(histories PROPERTIES ENVIRONMENT "GTEST_FILTER=-*ByHand.*")
add_test(NAME histories_by_hand COMMAND histories_test --gtest_filter=*ByHand.* WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(histories_by_hand PROPERTIES LABELS by_hand)
