// Made by scripts/generate from contract/; do not edit.
// clang-format off
#include "contract/generated/operations.hpp"

namespace polymux::contract::generated {
namespace {

constexpr std::string_view ImagePart_url_schemes[] = {"http", "https", "data"};
constexpr std::string_view ImagePart_detail_choices[] = {"auto", "low", "high"};
constexpr Field ImagePart_fields[] = {
    {.name = "url", .types = type_string, .required = true, .url = true, .schemes = ImagePart_url_schemes, .documentation = "URL of the image, or a data URL with its content.", .title = "Image URL"},
    {.name = "detail", .types = type_string, .choices = ImagePart_detail_choices, .default_json = "\"auto\"", .documentation = "Level of detail at which the model reads the image.", .title = "Detail"},
};

constexpr ObjectType ImagePart = {
    .name = "ImagePart",
    .documentation = "An image in a message.",
    .fields = ImagePart_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view ContentPart_type_choices[] = {"text", "image_url"};
constexpr Field ContentPart_fields[] = {
    {.name = "type", .types = type_string, .required = true, .choices = ContentPart_type_choices, .documentation = "Type of the part. The field of the same name has the content.", .title = "Type"},
    {.name = "text", .types = type_string, .documentation = "The text, if `type` is `text`.", .title = "Text"},
    {.name = "image_url", .types = type_object, .object = &ImagePart, .documentation = "The image, if `type` is `image_url`.", .title = "Image URL"},
};

constexpr std::string_view ContentPart_rule_0[] = {"type"};
constexpr Rule ContentPart_rules[] = {
    {.kind = Rule::Kind::names_field, .fields = ContentPart_rule_0},
};

constexpr ObjectType ContentPart = {
    .name = "ContentPart",
    .documentation = "A part of a message: text or an image.",
    .fields = ContentPart_fields,
    .rules = ContentPart_rules,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field CalledFunction_fields[] = {
    {.name = "name", .types = type_string, .required = true, .documentation = "Name of the function.", .title = "Name"},
    {.name = "arguments", .types = type_string, .required = true, .documentation = "Arguments of the call, as a JSON object in a string.", .title = "Arguments"},
};

constexpr ObjectType CalledFunction = {
    .name = "CalledFunction",
    .documentation = "A function call: the function's name and its arguments.",
    .fields = CalledFunction_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view ToolCall_type_choices[] = {"function"};
constexpr Field ToolCall_fields[] = {
    {.name = "id", .types = type_string, .required = true, .documentation = "ID of the call. The message with the call's result repeats it as `tool_call_id`.", .title = "ID"},
    {.name = "type", .types = type_string, .required = true, .choices = ToolCall_type_choices, .documentation = "Always `function`.", .title = "Type"},
    {.name = "function", .types = type_object, .required = true, .object = &CalledFunction, .documentation = "The function to call, with its arguments.", .title = "Function"},
};

constexpr ObjectType ToolCall = {
    .name = "ToolCall",
    .documentation = "A tool call that a model made.",
    .fields = ToolCall_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view ChatMessage_role_choices[] = {"system", "user", "assistant", "tool", "function", "developer"};
constexpr Field ChatMessage_content_item = {.name = "", .types = type_object, .object = &ContentPart};
constexpr Field ChatMessage_tool_calls_item = {.name = "", .types = type_object, .object = &ToolCall};
constexpr Field ChatMessage_fields[] = {
    {.name = "role", .types = type_string, .required = true, .choices = ChatMessage_role_choices, .documentation = "Role of the message's author.", .title = "Role"},
    {.name = "content", .types = type_string | type_array | type_null, .item = &ChatMessage_content_item, .documentation = "Content of the message: text, or a list of text and image parts.", .title = "Content"},
    {.name = "name", .types = type_string, .extension = true, .documentation = "Name of the participant, or of the function whose result this message contains.", .title = "Name"},
    {.name = "tool_calls", .types = type_array, .extension = true, .item = &ChatMessage_tool_calls_item, .documentation = "Tool calls that the assistant made.", .title = "Tool calls"},
    {.name = "tool_call_id", .types = type_string, .extension = true, .documentation = "ID of the tool call whose result this message contains.", .title = "Tool call ID"},
    {.name = "function_call", .types = type_object, .extension = true, .object = &CalledFunction, .deprecated = "tool_calls", .documentation = "Older form of `tool_calls`.", .title = "Function call"},
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
    {.name = "name", .types = type_string, .required = true, .min_length = 1, .max_length = 64, .documentation = "Name of the schema.", .title = "Name"},
    {.name = "description", .types = type_string, .documentation = "Purpose of the answer, for the model.", .title = "Description"},
    {.name = "schema", .types = type_object, .documentation = "JSON Schema that the answer must match.", .title = "Schema"},
    {.name = "strict", .types = type_boolean, .documentation = "Require the answer to match the schema exactly.", .title = "Strict"},
};

constexpr ObjectType NamedSchema = {
    .name = "NamedSchema",
    .documentation = "A JSON Schema with a name.",
    .fields = NamedSchema_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view ResponseFormat_type_choices[] = {"text", "json_object", "json_schema"};
constexpr Field ResponseFormat_fields[] = {
    {.name = "type", .types = type_string, .required = true, .choices = ResponseFormat_type_choices, .documentation = "Kind of answer: `text`, `json_object` (any JSON object) or `json_schema` (JSON that matches a schema).", .title = "Type"},
    {.name = "json_schema", .types = type_object, .object = &NamedSchema, .documentation = "The JSON Schema with its name, if `type` is `json_schema`.", .title = "JSON Schema"},
};

constexpr std::string_view ResponseFormat_rule_0[] = {"type"};
constexpr Rule ResponseFormat_rules[] = {
    {.kind = Rule::Kind::names_field, .fields = ResponseFormat_rule_0},
};

constexpr ObjectType ResponseFormat = {
    .name = "ResponseFormat",
    .documentation = "The format of the answer.",
    .fields = ResponseFormat_fields,
    .rules = ResponseFormat_rules,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field Function_fields[] = {
    {.name = "name", .types = type_string, .required = true, .min_length = 1, .max_length = 64, .documentation = "Name of the function.", .title = "Name"},
    {.name = "description", .types = type_string, .documentation = "Purpose of the function, and when the model should call it.", .title = "Description"},
    {.name = "parameters", .types = type_object, .documentation = "JSON Schema of the arguments.", .title = "Parameters"},
    {.name = "strict", .types = type_boolean, .documentation = "Require the arguments to match the schema exactly.", .title = "Strict"},
};

constexpr ObjectType Function = {
    .name = "Function",
    .documentation = "A function that a model may call.",
    .fields = Function_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view Tool_type_choices[] = {"function"};
constexpr Field Tool_fields[] = {
    {.name = "type", .types = type_string, .required = true, .choices = Tool_type_choices, .documentation = "Always `function`.", .title = "Type"},
    {.name = "function", .types = type_object, .required = true, .object = &Function, .documentation = "Definition of the function.", .title = "Function"},
};

constexpr ObjectType Tool = {
    .name = "Tool",
    .documentation = "A tool that a model may call.",
    .fields = Tool_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field FunctionName_fields[] = {
    {.name = "name", .types = type_string, .required = true, .min_length = 1, .documentation = "Name of the function.", .title = "Name"},
};

constexpr ObjectType FunctionName = {
    .name = "FunctionName",
    .documentation = "The name of a function.",
    .fields = FunctionName_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view NamedToolChoice_type_choices[] = {"function"};
constexpr Field NamedToolChoice_fields[] = {
    {.name = "type", .types = type_string, .required = true, .choices = NamedToolChoice_type_choices, .documentation = "Always `function`.", .title = "Type"},
    {.name = "function", .types = type_object, .required = true, .object = &FunctionName, .documentation = "The function to call.", .title = "Function"},
};

constexpr ObjectType NamedToolChoice = {
    .name = "NamedToolChoice",
    .documentation = "The tool that the model must call.",
    .fields = NamedToolChoice_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr Field StreamOptions_fields[] = {
    {.name = "include_usage", .types = type_boolean, .documentation = "Send the token counts in an additional last chunk.", .title = "Include usage"},
};

constexpr ObjectType StreamOptions = {
    .name = "StreamOptions",
    .documentation = "Options for streamed answers.",
    .fields = StreamOptions_fields,
    .unknown_fields = UnknownFields::pass,
};

constexpr std::string_view TextMessage_role_choices[] = {"system", "user", "assistant"};
constexpr Field TextMessage_fields[] = {
    {.name = "role", .types = type_string, .required = true, .choices = TextMessage_role_choices, .documentation = "Role of the message's author.", .title = "Role"},
    {.name = "content", .types = type_string, .required = true, .documentation = "Text of the message.", .title = "Content"},
};

constexpr ObjectType TextMessage = {
    .name = "TextMessage",
    .documentation = "One plain-text message of a conversation.",
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
    {.name = "messages", .types = type_array, .required = true, .min_items = 1, .item = &chat_messages_item, .documentation = "Messages of the conversation, oldest first.", .title = "Messages"},
    {.name = "model", .types = type_string, .required = true, .format = Format::name, .documentation = "Name of a chat model that the server offers, such as `default`.", .title = "Model"},
    {.name = "stream", .types = type_boolean, .default_json = "false", .documentation = "Stream the answer in chunks while it is generated.", .title = "Stream"},
    {.name = "temperature", .types = type_number, .extension = true, .minimum = 0, .maximum = 2, .default_json = "1", .documentation = "Sampling temperature. Higher values give more random answers; 0 always picks the most likely token.", .title = "Temperature"},
    {.name = "top_p", .types = type_number, .extension = true, .minimum = 0, .maximum = 1, .default_json = "1", .documentation = "Nucleus sampling: only the most likely tokens are considered, up to this total probability.", .title = "Top P"},
    {.name = "max_completion_tokens", .types = type_integer, .extension = true, .minimum = 1, .aliases = chat_max_completion_tokens_aliases, .documentation = "Maximum number of tokens to generate. Default: the model's limit.", .title = "Maximum tokens"},
    {.name = "stop", .types = type_string | type_array, .extension = true, .max_items = 4, .item = &chat_stop_item, .documentation = "Texts at which the answer ends. The answer does not contain them.", .title = "Stop sequences"},
    {.name = "seed", .types = type_integer, .extension = true, .documentation = "Random seed. The same request with the same seed gives the same answer, if the model supports it.", .title = "Seed"},
    {.name = "n", .types = type_integer, .extension = true, .minimum = 1, .maximum = 8, .default_json = "1", .documentation = "Number of answers to generate, if the model supports several.", .title = "Number of answers"},
    {.name = "response_format", .types = type_object, .extension = true, .object = &ResponseFormat, .documentation = "Format of the answer: free text, any JSON object, or JSON that matches a schema.", .title = "Response format"},
    {.name = "tools", .types = type_array, .extension = true, .max_items = 128, .item = &chat_tools_item, .documentation = "Functions that the model may call.", .title = "Tools"},
    {.name = "tool_choice", .types = type_string | type_object, .extension = true, .choices = chat_tool_choice_choices, .object = &NamedToolChoice, .documentation = "Whether the model calls tools: `none` forbids it, `auto` lets the model decide, `required` forces a call. An object names the tool to call.", .title = "Tool choice"},
    {.name = "parallel_tool_calls", .types = type_boolean, .extension = true, .default_json = "true", .documentation = "Allow several tool calls in one answer.", .title = "Parallel tool calls"},
    {.name = "disable_tool_validation", .types = type_boolean, .extension = true, .default_json = "false", .documentation = "Skip the validation of tool calls: accept arguments that do not match the tool's schema.", .title = "Skip tool validation"},
    {.name = "reasoning_effort", .types = type_string, .extension = true, .choices = chat_reasoning_effort_choices, .documentation = "How much a reasoning model reasons before it answers.", .title = "Reasoning effort"},
    {.name = "reasoning_format", .types = type_string, .extension = true, .choices = chat_reasoning_format_choices, .documentation = "Placement of the reasoning: `hidden` omits it, `raw` puts it in the text, `parsed` puts it in a separate field.", .title = "Reasoning format"},
    {.name = "include_reasoning", .types = type_boolean, .extension = true, .documentation = "Include the reasoning in the answer.", .title = "Include reasoning"},
    {.name = "service_tier", .types = type_string, .extension = true, .choices = chat_service_tier_choices, .default_json = "\"on_demand\"", .documentation = "Service tier, for providers that offer several.", .title = "Service tier"},
    {.name = "stream_options", .types = type_object, .extension = true, .object = &StreamOptions, .documentation = "Options for streamed answers.", .title = "Stream options"},
    {.name = "user", .types = type_string, .extension = true, .documentation = "ID of the end user, for the provider's records.", .title = "End user"},
    {.name = "frequency_penalty", .types = type_number, .extension = true, .minimum = -2, .maximum = 2, .default_json = "0", .documentation = "Penalty for each earlier occurrence of a token. Positive values reduce repetition.", .title = "Frequency penalty"},
    {.name = "presence_penalty", .types = type_number, .extension = true, .minimum = -2, .maximum = 2, .default_json = "0", .documentation = "Penalty for tokens that have already occurred. Positive values encourage new topics.", .title = "Presence penalty"},
    {.name = "logprobs", .types = type_boolean, .extension = true, .documentation = "Return log probabilities of the answer's tokens.", .title = "Return log probabilities"},
    {.name = "top_logprobs", .types = type_integer, .extension = true, .minimum = 0, .maximum = 20, .documentation = "Number of most likely tokens whose log probabilities are returned at each position; requires `logprobs`.", .title = "Top log probabilities"},
    {.name = "logit_bias", .types = type_object, .extension = true, .documentation = "Map of token IDs to biases from -100 to 100, which are added to the logits of the tokens.", .title = "Logit bias"},
    {.name = "functions", .types = type_array, .extension = true, .max_items = 128, .item = &chat_functions_item, .deprecated = "tools", .documentation = "Functions that the model may call.", .title = "Functions"},
    {.name = "function_call", .types = type_string | type_object, .extension = true, .choices = chat_function_call_choices, .object = &FunctionName, .deprecated = "tool_choice", .documentation = "Whether the model calls a function: `none` forbids it, `auto` lets the model decide. An object names the function to call.", .title = "Function call"},
    {.name = "documents", .types = type_array, .extension = true, .item = &chat_documents_item, .documentation = "Documents that the model may use for the answer, if it supports documents.", .title = "Documents"},
    {.name = "citation_options", .types = type_string, .extension = true, .choices = chat_citation_options_choices, .documentation = "Enable or disable citations of `documents` in the answer.", .title = "Citation options"},
    {.name = "search_settings", .types = type_object, .extension = true, .documentation = "Web search settings, for models with built-in search.", .title = "Web search settings"},
    {.name = "compound_custom", .types = type_object, .extension = true, .documentation = "Settings of compound models, which combine several models and tools.", .title = "Compound model settings"},
    {.name = "include_domains", .types = type_array, .extension = true, .item = &chat_include_domains_item, .deprecated = "search_settings", .documentation = "Allowed domains: web search uses no others.", .title = "Allowed domains"},
    {.name = "exclude_domains", .types = type_array, .extension = true, .item = &chat_exclude_domains_item, .deprecated = "search_settings", .documentation = "Excluded domains, which web search must not use.", .title = "Excluded domains"},
    {.name = "metadata", .types = type_object, .extension = true, .documentation = "Key-value pairs that the provider stores with the request, if it supports this.", .title = "Metadata"},
    {.name = "store", .types = type_boolean, .extension = true, .documentation = "Ask the provider of the model to store the conversation.", .title = "Store conversation"},
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
     .body = {.name = "chat", .documentation = "Generate the next message of a conversation, as one response or as a stream of chunks.",
              .fields = chat_fields, .rules = chat_rules,
              .unknown_fields = UnknownFields::pass}},
};

constexpr std::string_view chat_refused[] = {"api_base", "base_url", "api_key", "headers", "extra_headers", "proxy", "organization"};
constexpr Field free_chat_messages_item = {.name = "", .types = type_object, .object = &TextMessage};
constexpr std::string_view free_chat_model_choices[] = {"gpt-4o", "gpt-3.5-turbo", "gpt-4"};
constexpr std::string_view free_chat_image_url_schemes[] = {"http", "https", "data"};
constexpr Field free_chat_fields[] = {
    {.name = "messages", .types = type_array, .required = true, .min_items = 1, .item = &free_chat_messages_item, .documentation = "Messages of the conversation, oldest first.", .title = "Messages"},
    {.name = "model", .types = type_string, .choices = free_chat_model_choices, .default_json = "\"gpt-4o\"", .documentation = "Name of the list of models that are tried one after another.", .title = "Model list"},
    {.name = "stream", .types = type_boolean, .default_json = "false", .documentation = "Stream the answer in chunks while it is generated.", .title = "Stream"},
    {.name = "timeout", .python_name = "answer_timeout_s", .types = type_integer, .minimum = 1, .maximum = 300, .unit = "s", .documentation = "Time limit for the whole answer, including failed attempts with other models.", .title = "Timeout"},
    {.name = "shuffle", .types = type_boolean, .default_json = "false", .documentation = "Try the models in random order.", .title = "Random order"},
    {.name = "image_url", .types = type_string, .url = true, .schemes = free_chat_image_url_schemes, .documentation = "URL of an image that the question is about, or a data URL with the image (at most 20 MiB).", .title = "Image URL"},
};

constexpr Variant free_chat_variants[] = {
    {.id = "",
     .model = "",
     .summary = "",
     .encoding = Encoding::json,
     .accepts_json = true,
     .accepts_multipart = false,
     .body = {.name = "free_chat", .documentation = "Generate the next message of a conversation as plain text, with the first available of several chat models.",
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
    .summary = "Generate the next message of a conversation, as one response or as a stream of chunks.",
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
    .summary = "Generate the next message of a conversation as plain text, with the first available of several chat models.",
    .first = "messages",
    .result = "TextResponse",
    .stream_result = "TextChunk",
    .refused_fields = free_chat_refused,
    .variants = free_chat_variants,
};

}  // namespace polymux::contract::generated
