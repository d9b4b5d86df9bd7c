from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
import openai
from pydantic import BaseModel
from report import BUSY, GIVEN, ORIGIN, SLOW, TOO_LONG, equal, freed, raised_by, works


def model_of(origin, model):
    return OpenAILike(
        model=model,
        api_base=f"{origin}/v1",
        api_key="none",
        temperature=0,
        max_retries=0,
        context_window=4096,
        is_chat_model=True,
        is_function_calling_model=True,
        should_use_structured_outputs=True,
    )


model = model_of(ORIGIN, GIVEN["generator"])


class Answer(BaseModel):
    answer: int


def said(content):
    return [ChatMessage(role="user", content=content)]


def add(a: int, b: int) -> int:
    """Adds"""
    return a + b


@works
def chat():
    equal(model.chat(said("hello")).message.content, " from the chain.")


@works
def stream():
    equal("".join(part.delta or "" for part in model.stream_chat(said("hello"))), " from the chain.")


@works
def tools():
    answer = model.chat_with_tools([FunctionTool.from_defaults(add)], user_msg="call")
    call = model.get_tool_calls_from_response(answer)[0]
    equal([call.tool_name, call.tool_kwargs], ["add", {"a": 1, "b": 2}])


@works
def schema():
    equal(model.as_structured_llm(Answer).chat(said("json")).raw, Answer(answer=42))


@works
def embeddings():
    embedder = OpenAILikeEmbedding(model_name=GIVEN["embedder"], api_base=f"{ORIGIN}/v1", api_key="none")
    vectors = embedder.get_text_embedding_batch(["the cat", "a dog"])
    equal([len(vector) for vector in vectors], [32, 32])


@works
def cancel():
    parts = model_of(SLOW, "puppet").stream_chat(said("drip"))
    next(part for part in parts if part.delta)
    parts.close()
    freed()


@works
def errors():
    long = raised_by(lambda: model.chat(said(TOO_LONG)))
    assert isinstance(long, openai.BadRequestError) and long.code == "context_length_exceeded", long
    gone = raised_by(lambda: model_of(ORIGIN, "gone").chat(said("hello")))
    assert isinstance(gone, openai.NotFoundError), gone
    busy = raised_by(lambda: model_of(BUSY, "puppet").chat(said("hi")))
    equal(busy.status_code, 503)
