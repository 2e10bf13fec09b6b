"""The labels of formats that a `ToolCallReader` knows: what a part of a reply is."""

#: The reply's text, and the reasoning before it.
CONTENT, REASONING = "content", "reasoning"

#: A whole reply whose message has null for its content where there is no text, as some chat templates ask.
NULL_CONTENT = "content:null"

#: A call, followed by the name of the tool; within it, its id and its arguments. An id may have a text before it that
#: the reply does not have there: ``id:TEXT``.
CALL, ID, ARGUMENTS = "call:", "id", "arguments"

#: Arguments in Gemma's notation, which is made of other formats.
GEMMA = "arguments:gemma"
