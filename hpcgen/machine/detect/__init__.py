"""What a machine is, read from the machine itself: without rights, without the network, without changing anything."""
