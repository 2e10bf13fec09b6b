"""The labels of formats that a `ToolCallReader` knows: what a part of a reply is."""

#: The reply's text, and the reasoning before it.
CONTENT, REASONING = "content", "reasoning"

#: A call, followed by the name of the tool; within it, its id and its arguments.
CALL, ID, ARGUMENTS = "call:", "id", "arguments"

#: Arguments in Gemma's notation, which is made of other formats.
GEMMA = "arguments:gemma"
