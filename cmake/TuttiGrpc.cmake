# What protoc makes of src/rpc/controller.proto, without our warnings, and the libraries that it needs.
pkg_check_modules(grpc REQUIRED IMPORTED_TARGET grpc++ protobuf)
find_program(TUTTI_PROTOC protoc REQUIRED)
find_program(TUTTI_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
set(folder ${CMAKE_BINARY_DIR}/rpc)
file(MAKE_DIRECTORY ${folder})
set(generated ${folder}/controller.pb.cc ${folder}/controller.pb.h ${folder}/controller.grpc.pb.cc ${folder}/controller.grpc.pb.h)
add_custom_command(
  OUTPUT ${generated}
  COMMAND ${TUTTI_PROTOC} -I ${PROJECT_SOURCE_DIR}/src/rpc --cpp_out=${folder} --grpc_out=${folder}
          --plugin=protoc-gen-grpc=${TUTTI_GRPC_CPP_PLUGIN} controller.proto
  DEPENDS ${PROJECT_SOURCE_DIR}/src/rpc/controller.proto
  VERBATIM)
# What linters need of it.
add_custom_target(tutti_rpc_code DEPENDS ${generated})
add_library(tutti_rpc_messages STATIC ${generated})
target_include_directories(tutti_rpc_messages SYSTEM PUBLIC ${folder})
target_link_libraries(tutti_rpc_messages PUBLIC PkgConfig::grpc)
target_compile_options(tutti_rpc_messages PRIVATE -w $<$<CONFIG:Release>:-O1>)
target_compile_features(tutti_rpc_messages PUBLIC cxx_std_20)
