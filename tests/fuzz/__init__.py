"""Fuzzing, both ways: what strangers send to a broker, and what a lying broker answers to the
clients. See docs/fuzzing.md.

An input is a string of bytes, the `Tape`. A target reads its choices off the tape (which API, which
field, how much of it is cut off) and zeros once the tape has ended, so any bytes are an input, the
same bytes are the same run, and bytes that are changed a little are a run that is changed a little.
That is what `engine` lives by: tapes that reached code that no other did are kept, changed and
joined. `coverage` says what was reached.

    wire        frames into FrameReader and the decoders of all requests and responses
    records     record batches into the kernels and their reference implementations, which agree
    codecs      compressed blocks into `decompress`
    broker      requests of every API and version, sound and garbled, on several connections
    rights      the same of a broker with an authorizer
    producer, transactions, consumer, group, admin
                the clients, through their blocking faces in virtual time, against real
                brokers behind a `liar`

A target raises whatever is a finding: an exception that is no named error, a difference between the
two, an operation that outlives its time-out. It returns how many inputs it made: frames, batches,
requests, answers.
"""
