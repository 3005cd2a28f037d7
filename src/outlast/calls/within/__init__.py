"""What a tool reaches from within its call: output, files, questions, connections, operations elsewhere."""
