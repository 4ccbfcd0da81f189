// Made by scripts/generate from contract/; change it there.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr std::string_view ImagePart_url_schemes[] = {"http", "https", "data"};
constexpr std::string_view ImagePart_detail_choices[] = {"auto", "low", "high"};
constexpr Field ImagePart_fields[] = {
    {.name = "url", .types = type_string, .required = true, .url = true, .schemes = ImagePart_url_schemes, .documentation = "Address of the picture, or a data URL that holds it."},
    {.name = "detail", .types = type_string, .choices = ImagePart_detail_choices, .default_json = "\"auto\"", .documentation = "How closely the model looks."},
};

constexpr ObjectType ImagePart = {
    .name = "ImagePart",
    .documentation = "A picture in a message.",
    .fields = ImagePart_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view ContentPart_type_choices[] = {"text", "image_url"};
constexpr Field ContentPart_fields[] = {
    {.name = "type", .types = type_string, .required = true, .choices = ContentPart_type_choices, .documentation = "What the part is."},
    {.name = "text", .types = type_string, .documentation = "The text, in a part of type `text`."},
    {.name = "image_url", .types = type_object, .object = &ImagePart, .documentation = "The picture, in a part of type `image_url`."},
};

constexpr std::string_view ContentPart_rule_0[] = {"type"};
constexpr Rule ContentPart_rules[] = {
    {.kind = Rule::Kind::names_field, .fields = ContentPart_rule_0},
};

constexpr ObjectType ContentPart = {
    .name = "ContentPart",
    .documentation = "A piece of a message: text, or a picture.",
    .fields = ContentPart_fields,
    .rules = ContentPart_rules,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field CalledFunction_fields[] = {
    {.name = "name", .types = type_string, .required = true, .documentation = "The function."},
    {.name = "arguments", .types = type_string, .required = true, .documentation = "Its arguments, as the text of a JSON object."},
};

constexpr ObjectType CalledFunction = {
    .name = "CalledFunction",
    .documentation = "A function and what it is called with.",
    .fields = CalledFunction_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view ToolCall_type_choices[] = {"function"};
constexpr Field ToolCall_fields[] = {
    {.name = "id", .types = type_string, .required = true, .documentation = "Number of the call, which the answer to it repeats."},
    {.name = "type", .types = type_string, .required = true, .choices = ToolCall_type_choices, .documentation = "Kind of tool."},
    {.name = "function", .types = type_object, .required = true, .object = &CalledFunction, .documentation = "What to call."},
};

constexpr ObjectType ToolCall = {
    .name = "ToolCall",
    .documentation = "A call of a function that a model asked for.",
    .fields = ToolCall_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view ChatMessage_role_choices[] = {"system", "user", "assistant", "tool", "function", "developer"};
constexpr Field ChatMessage_content_item = {.name = "", .types = type_object, .object = &ContentPart};
constexpr Field ChatMessage_tool_calls_item = {.name = "", .types = type_object, .object = &ToolCall};
constexpr Field ChatMessage_fields[] = {
    {.name = "role", .types = type_string, .required = true, .choices = ChatMessage_role_choices, .documentation = "Who speaks."},
    {.name = "content", .types = type_string | type_array | type_null, .item = &ChatMessage_content_item, .documentation = "What is said: text, or parts of text and pictures."},
    {.name = "name", .types = type_string, .extension = true, .documentation = "Name of the speaker, or of the function that answers."},
    {.name = "tool_calls", .types = type_array, .extension = true, .item = &ChatMessage_tool_calls_item, .documentation = "Calls that the assistant asked for."},
    {.name = "tool_call_id", .types = type_string, .extension = true, .documentation = "The call that this message answers."},
    {.name = "function_call", .types = type_object, .extension = true, .object = &CalledFunction, .deprecated = "tool_calls", .documentation = "Older form of `tool_calls`."},
};

constexpr std::string_view ChatMessage_rule_0[] = {"content", "tool_calls", "function_call"};
constexpr Rule ChatMessage_rules[] = {
    {.kind = Rule::Kind::required_unless, .fields = ChatMessage_rule_0},
};

constexpr ObjectType ChatMessage = {
    .name = "ChatMessage",
    .documentation = "One message of a conversation.",
    .fields = ChatMessage_fields,
    .rules = ChatMessage_rules,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field NamedSchema_fields[] = {
    {.name = "name", .types = type_string, .required = true, .min_length = 1, .max_length = 64, .documentation = "Name of the schema."},
    {.name = "description", .types = type_string, .documentation = "What the answer is for."},
    {.name = "schema", .types = type_object, .documentation = "The schema."},
    {.name = "strict", .types = type_boolean, .documentation = "Hold the model to the schema exactly."},
};

constexpr ObjectType NamedSchema = {
    .name = "NamedSchema",
    .documentation = "A JSON Schema with a name.",
    .fields = NamedSchema_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view ResponseFormat_type_choices[] = {"text", "json_object", "json_schema"};
constexpr Field ResponseFormat_fields[] = {
    {.name = "type", .types = type_string, .required = true, .choices = ResponseFormat_type_choices, .documentation = "Which form."},
    {.name = "json_schema", .types = type_object, .object = &NamedSchema, .documentation = "The schema, with type `json_schema`."},
};

constexpr std::string_view ResponseFormat_rule_0[] = {"type"};
constexpr Rule ResponseFormat_rules[] = {
    {.kind = Rule::Kind::names_field, .fields = ResponseFormat_rule_0},
};

constexpr ObjectType ResponseFormat = {
    .name = "ResponseFormat",
    .documentation = "The form that an answer must have.",
    .fields = ResponseFormat_fields,
    .rules = ResponseFormat_rules,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field Function_fields[] = {
    {.name = "name", .types = type_string, .required = true, .min_length = 1, .max_length = 64, .documentation = "Its name."},
    {.name = "description", .types = type_string, .documentation = "What it does and when to call it."},
    {.name = "parameters", .types = type_object, .documentation = "JSON Schema of its arguments."},
    {.name = "strict", .types = type_boolean, .documentation = "Hold the model to the schema exactly."},
};

constexpr ObjectType Function = {
    .name = "Function",
    .documentation = "A function that a model may ask to be called.",
    .fields = Function_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view Tool_type_choices[] = {"function"};
constexpr Field Tool_fields[] = {
    {.name = "type", .types = type_string, .required = true, .choices = Tool_type_choices, .documentation = "Kind of tool."},
    {.name = "function", .types = type_object, .required = true, .object = &Function, .documentation = "The function."},
};

constexpr ObjectType Tool = {
    .name = "Tool",
    .documentation = "A tool that a model may use.",
    .fields = Tool_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field FunctionName_fields[] = {
    {.name = "name", .types = type_string, .required = true, .min_length = 1, .documentation = "The function."},
};

constexpr ObjectType FunctionName = {
    .name = "FunctionName",
    .documentation = "A function by its name.",
    .fields = FunctionName_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view NamedToolChoice_type_choices[] = {"function"};
constexpr Field NamedToolChoice_fields[] = {
    {.name = "type", .types = type_string, .required = true, .choices = NamedToolChoice_type_choices, .documentation = "Kind of tool."},
    {.name = "function", .types = type_object, .required = true, .object = &FunctionName, .documentation = "The function."},
};

constexpr ObjectType NamedToolChoice = {
    .name = "NamedToolChoice",
    .documentation = "The tool that must be called.",
    .fields = NamedToolChoice_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field StreamOptions_fields[] = {
    {.name = "include_usage", .types = type_boolean, .documentation = "Send the token counts in a last chunk of their own."},
};

constexpr ObjectType StreamOptions = {
    .name = "StreamOptions",
    .documentation = "What a stream carries beside the text.",
    .fields = StreamOptions_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view TextMessage_role_choices[] = {"system", "user", "assistant"};
constexpr Field TextMessage_fields[] = {
    {.name = "role", .types = type_string, .required = true, .choices = TextMessage_role_choices, .documentation = "Who speaks."},
    {.name = "content", .types = type_string, .required = true, .documentation = "What is said."},
};

constexpr ObjectType TextMessage = {
    .name = "TextMessage",
    .documentation = "One message of a conversation in plain text.",
    .fields = TextMessage_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field chat_messages_item = {.name = "", .types = type_object, .object = &ChatMessage};
constexpr std::string_view chat_max_completion_tokens_aliases[] = {"max_tokens"};
constexpr Field chat_stop_item = {.name = "", .types = type_string};
constexpr Field chat_tools_item = {.name = "", .types = type_object, .object = &Tool};
constexpr std::string_view chat_tool_choice_choices[] = {"none", "auto", "required"};
constexpr std::string_view chat_reasoning_effort_choices[] = {"none", "default", "low", "medium", "high"};
constexpr std::string_view chat_reasoning_format_choices[] = {"hidden", "raw", "parsed"};
constexpr std::string_view chat_service_tier_choices[] = {"auto", "on_demand", "flex", "performance"};
constexpr Field chat_functions_item = {.name = "", .types = type_object, .object = &Function};
constexpr std::string_view chat_function_call_choices[] = {"none", "auto"};
constexpr Field chat_documents_item = {.name = "", .types = type_object};
constexpr std::string_view chat_citation_options_choices[] = {"enabled", "disabled"};
constexpr Field chat_include_domains_item = {.name = "", .types = type_string};
constexpr Field chat_exclude_domains_item = {.name = "", .types = type_string};
constexpr Field chat_fields[] = {
    {.name = "messages", .types = type_array, .required = true, .min_items = 1, .item = &chat_messages_item, .documentation = "The conversation so far, oldest message first."},
    {.name = "model", .types = type_string, .required = true, .format = Format::name, .documentation = "Name of the chat model, as the server lists it."},
    {.name = "stream", .types = type_boolean, .default_json = "false", .documentation = "Send the answer in pieces, as they are made."},
    {.name = "temperature", .types = type_number, .extension = true, .minimum = 0, .maximum = 2, .default_json = "1", .documentation = "Randomness of the sampling; 0 takes the likeliest token."},
    {.name = "top_p", .types = type_number, .extension = true, .minimum = 0, .maximum = 1, .default_json = "1", .documentation = "Share of probability that tokens are sampled from."},
    {.name = "max_completion_tokens", .types = type_integer, .extension = true, .minimum = 1, .aliases = chat_max_completion_tokens_aliases, .unit = "tokens", .documentation = "Longest answer; the model's own limit when absent."},
    {.name = "stop", .types = type_string | type_array, .extension = true, .max_items = 4, .item = &chat_stop_item, .documentation = "Texts that end the answer where they would appear, four at most."},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Makes sampling repeatable as far as the model can."},
    {.name = "n", .types = type_integer, .extension = true, .minimum = 1, .maximum = 8, .default_json = "1", .documentation = "How many answers to make, where the model can make several."},
    {.name = "response_format", .types = type_object, .extension = true, .object = &ResponseFormat, .documentation = "Form of the answer: free text, any JSON object, or JSON of a schema."},
    {.name = "tools", .types = type_array, .extension = true, .max_items = 128, .item = &chat_tools_item, .documentation = "Functions that the model may ask to be called."},
    {.name = "tool_choice", .types = type_string | type_object, .extension = true, .choices = chat_tool_choice_choices, .object = &NamedToolChoice, .documentation = "Whether a tool must, may or must not be called, or which one."},
    {.name = "parallel_tool_calls", .types = type_boolean, .extension = true, .default_json = "true", .documentation = "Allow several tool calls in one answer."},
    {.name = "disable_tool_validation", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Accept tool calls that do not fit the tools' schemas."},
    {.name = "reasoning_effort", .types = type_string, .extension = true, .choices = chat_reasoning_effort_choices, .documentation = "How much a reasoning model thinks before it answers."},
    {.name = "reasoning_format", .types = type_string, .extension = true, .choices = chat_reasoning_format_choices, .documentation = "Where the thinking goes: left out, inside the text, or apart from it."},
    {.name = "include_reasoning", .types = type_boolean, .extension = true, .documentation = "Whether the answer carries the thinking at all."},
    {.name = "service_tier", .types = type_string, .extension = true, .choices = chat_service_tier_choices, .default_json = "\"on_demand\"", .documentation = "Class of service at providers that have several."},
    {.name = "stream_options", .types = type_object, .extension = true, .object = &StreamOptions, .documentation = "What a stream carries beside the text."},
    {.name = "user", .types = type_string, .extension = true, .documentation = "Name of the end user, for the provider's own records."},
    {.name = "frequency_penalty", .types = type_number, .extension = true, .minimum = -2, .maximum = 2, .default_json = "0", .documentation = "Positive values make repeated words less likely."},
    {.name = "presence_penalty", .types = type_number, .extension = true, .minimum = -2, .maximum = 2, .default_json = "0", .documentation = "Positive values make new subjects more likely."},
    {.name = "logprobs", .types = type_boolean, .extension = true, .documentation = "Return the log probabilities of the answer's tokens."},
    {.name = "top_logprobs", .types = type_integer, .extension = true, .minimum = 0, .maximum = 20, .documentation = "How many likeliest tokens to return at each place."},
    {.name = "logit_bias", .types = type_object, .extension = true, .documentation = "Token number to a value from -100 to 100 that makes it likelier."},
    {.name = "functions", .types = type_array, .extension = true, .max_items = 128, .item = &chat_functions_item, .deprecated = "tools", .documentation = "Older form of `tools`."},
    {.name = "function_call", .types = type_string | type_object, .extension = true, .choices = chat_function_call_choices, .object = &FunctionName, .deprecated = "tool_choice", .documentation = "Older form of `tool_choice`."},
    {.name = "documents", .types = type_array, .extension = true, .item = &chat_documents_item, .documentation = "Documents that the answer may draw on, where the model takes any."},
    {.name = "citation_options", .types = type_string, .extension = true, .choices = chat_citation_options_choices, .documentation = "Whether the answer cites the documents."},
    {.name = "search_settings", .types = type_object, .extension = true, .documentation = "Settings of models that search the web themselves."},
    {.name = "compound_custom", .types = type_object, .extension = true, .documentation = "Settings of models that are made of several models and tools."},
    {.name = "include_domains", .types = type_array, .extension = true, .item = &chat_include_domains_item, .deprecated = "search_settings", .documentation = "Domains that such a search is kept to."},
    {.name = "exclude_domains", .types = type_array, .extension = true, .item = &chat_exclude_domains_item, .deprecated = "search_settings", .documentation = "Domains that such a search leaves out."},
    {.name = "metadata", .types = type_object, .extension = true, .documentation = "Names and values kept with the request, where the provider stores any."},
    {.name = "store", .types = type_boolean, .extension = true, .documentation = "Ask the provider to keep the conversation."},
};

constexpr std::string_view chat_rule_0[] = {"reasoning_format", "include_reasoning"};
constexpr Rule chat_rules[] = {
    {.kind = Rule::Kind::at_most_one, .fields = chat_rule_0},
};

constexpr Variant chat_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "chat", .documentation = "Answers a conversation with a chat model, whole or as a stream of pieces.",
              .fields = chat_fields, .rules = chat_rules,
              .unknown_fields = UnknownFields::pass}},
};

constexpr std::string_view chat_refused[] = {"api_base", "base_url", "api_key", "headers", "extra_headers", "proxy", "organization"};
constexpr Field free_chat_messages_item = {.name = "", .types = type_object, .object = &TextMessage};
constexpr std::string_view free_chat_model_choices[] = {"gpt-4o", "gpt-3.5-turbo", "gpt-4"};
constexpr std::string_view free_chat_image_url_schemes[] = {"http", "https", "data"};
constexpr Field free_chat_fields[] = {
    {.name = "messages", .types = type_array, .required = true, .min_items = 1, .item = &free_chat_messages_item, .documentation = "The conversation so far, oldest message first."},
    {.name = "model", .types = type_string, .choices = free_chat_model_choices, .default_json = "\"gpt-4o\"", .documentation = "Which list of models to try."},
    {.name = "stream", .types = type_boolean, .default_json = "false", .documentation = "Send the answer in pieces, as they are made."},
    {.name = "timeout", .python_name = "answer_timeout_s", .types = type_integer, .minimum = 1, .maximum = 300, .unit = "s", .documentation = "Time for the whole answer, all models together."},
    {.name = "shuffle", .types = type_boolean, .default_json = "false", .documentation = "Try the models in random order."},
    {.name = "image_url", .types = type_string, .url = true, .schemes = free_chat_image_url_schemes, .documentation = "Picture that the question is about: an address, or a data URL of at most 20 MiB."},
};

constexpr Variant free_chat_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "free_chat", .documentation = "Answers a conversation with the first of several chat models that can, and returns plain text.",
              .fields = free_chat_fields,
              .unknown_fields = UnknownFields::pass}},
};

constexpr std::string_view free_chat_refused[] = {"api_base", "base_url", "api_key", "headers", "extra_headers", "proxy", "organization"};
}  // namespace

constinit const Operation chat = {
    .name = "chat",
    .path = "/api/v1/fastllm/chatcompletion",
    .family = "chat",
    .title = "Chat completion",
    .summary = "Answers a conversation with a chat model, whole or as a stream of pieces.",
    .first = "messages",
    .result = "ChatCompletion",
    .stream_result = "ChatChunk",
    .refused_fields = chat_refused,
    .variants = chat_variants,
};

constinit const Operation free_chat = {
    .name = "free_chat",
    .path = "/api/v1/freellm",
    .family = "chat",
    .title = "Chat with failover",
    .summary = "Answers a conversation with the first of several chat models that can, and returns plain text.",
    .first = "messages",
    .result = "TextResponse",
    .stream_result = "TextChunk",
    .refused_fields = free_chat_refused,
    .variants = free_chat_variants,
};

}  // namespace polymux::contract::generated
