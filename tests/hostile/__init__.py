"""What strangers may send: definitions, files, processes; and the tests that run them."""
