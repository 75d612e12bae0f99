"""The clients that the lab compares, each as a process of its own, so that its CPU seconds and its
memory are the client's alone.

    sending  produces as fast as it can, from its first line on (`lab throughput`)
    reading  consumes as fast as it can (`lab consume`)
    fresh    a program that starts, sends or reads some records, and ends (`lab first-second`)
    paced    produces at a given rate, whatever the outcomes, and measures latencies (`lab kip480`,
             `lab kip794`)
    pressed  produces as hard as the client goes while a broker fails (`lab isolation`)

Each takes one argument, JSON that says what to do, and prints its figures as one line of JSON. All
clients of an experiment send the same values, with acks=all, and count what was acknowledged
without error; beyond that they have their own defaults.
"""
