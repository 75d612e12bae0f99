"""The systems that `lab throughput` compares, each a function that produces records and says how many were acknowledged.

`run` is started as a process of its own per system, so that its CPU seconds are the client's alone. All send the same value, without
key, with acks=all, and count what was acknowledged without error.
"""
