"""What a process is on: cores, memory, the device, the name of the host; and a child to ask."""
