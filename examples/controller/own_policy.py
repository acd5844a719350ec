#!/usr/bin/python3
"""A policy of one's own: every communicator gets one ring, in the order of its ranks' names, over route 0.

    apt-get install python3-grpcio python3-protobuf protobuf-compiler-grpc
    protoc -I src/rpc --python_out=. --grpc_out=. --plugin=protoc-gen-grpc=$(which grpc_python_plugin) controller.proto
    python3 own_policy.py 127.0.0.1:7700
"""
import sys

import grpc

import controller_pb2 as messages
import controller_pb2_grpc as services


def main():
    controller = services.ControllerStub(grpc.insecure_channel(sys.argv[1]))
    for communicator in controller.Show(messages.ShowRequest()).communicators:
        if "" in communicator.ranks:
            print(f"{communicator.communicator}: not all its ranks have joined")
            continue
        order = sorted(range(len(communicator.ranks)), key=lambda rank: communicator.ranks[rank])
        done = controller.Install(messages.InstallRequest(
            communicator=communicator.communicator, rings=[messages.Ring(ranks=order)], route=0))
        for applied in done.applied:
            print(f"{applied.communicator}: {applied.error or f'held for {1e3 * applied.hold_s:.2f} ms'}")


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"own_policy: {error.details()}")
