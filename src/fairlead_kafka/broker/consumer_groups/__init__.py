"""Groups of the consumer protocol (KIP-848): the coordinator shares, members reconcile one by one.

Under construction: the assignors, and the expressions of subscriptions.
"""
