"""The server's orders: a queue, and one handler for each kind."""
