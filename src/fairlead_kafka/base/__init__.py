"""Base of every room: errors, error codes, configs, names, units and limits; nothing that acts.

- `errors`: the exceptions Fairlead raises, a dozen; the type says whose fault it is.
- `codes`: Kafka's error codes as one table whose columns are policies (retry, refresh metadata,
  find the coordinator again, give up).
- `config`, with `config_client` and `config_broker`: a table of configs per side, from which
  parsing, errors and the documentation come.
- `ids`, `units`, `limits`: what things are called, what time and size are counted in, and every
  bound with its reason.
- `kernel`: what a kernel is. A function over flat arrays in machine code (`src/native`, without the
  GIL where that pays), beside a reference implementation in Python and NumPy, written
  independently, that is its oracle in the tests.
- `checks`: how a `check()` reports that redundant state differs. `hooks`: named places where the
  simulation may plant a bug.

Nothing here imports another room, opens anything but the machine code, or reads a clock.
"""
