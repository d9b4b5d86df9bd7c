import asyncio
from datetime import date

from openai import AsyncOpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent, Embedder, ModelHTTPError, NativeOutput
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from report import BUSY, GIVEN, ORIGIN, SLOW, TOO_LONG, equal, freed, raised_by, works

LOOP = asyncio.new_event_loop()
WAYS = [OpenAIChatModel, OpenAIResponsesModel]


class Answer(BaseModel):
    answer: int
    day: date
    why: str = Field(max_length=2_100)


def provider_of(origin):
    return OpenAIProvider(openai_client=AsyncOpenAI(base_url=f"{origin}/v1", api_key="none", max_retries=0))


def agent(way=OpenAIChatModel, origin=ORIGIN, model=GIVEN["generator"], **more):
    return Agent(way(model, provider=provider_of(origin)), model_settings={"temperature": 0}, **more)


def run(of, words, **more):
    return LOOP.run_until_complete(of.run(words, **more))


@works
def chat():
    answer = run(agent(), "hello")
    equal([answer.output, answer.usage.output_tokens], [" from the chain.", 4])


@works
def stream():
    async def streamed(way):
        async with agent(way).run_stream("hello") as answer:
            return [piece async for piece in answer.stream_text(delta=True, debounce_by=None)]

    for way in WAYS:
        equal("".join(LOOP.run_until_complete(streamed(way))), " from the chain.")


@works
def tools():
    added = []

    def add(a: int, b: int) -> int:
        """Adds."""
        added.append(a + b)
        return a + b

    for way in WAYS:
        # The fixture says nothing behind a result, which an agent of text takes for a fault.
        raised_by(lambda way=way: run(agent(way, tools=[add], retries=0), "call"))
    equal(added, [3, 3])


@works
def schema():
    for way in WAYS:
        answer = run(agent(way, output_type=NativeOutput(Answer, strict=True)), "json").output
        assert isinstance(answer, Answer), answer


@works
def responses():
    of = agent(OpenAIResponsesModel)
    first = run(of, "hello")
    equal(first.output, " from the chain.")
    equal(run(of, "hello", message_history=first.all_messages()).output, " from the chain.")


@works
def embeddings():
    embedder = Embedder(OpenAIEmbeddingModel(GIVEN["embedder"], provider=provider_of(ORIGIN)))
    found = LOOP.run_until_complete(embedder.embed_documents(["the cat", "a dog"])).embeddings
    equal([len(each) for each in found], [32, 32])


@works
def cancel():
    async def left(way):
        async with agent(way, SLOW, "puppet").run_stream("drip") as answer:
            async for _ in answer.stream_text(delta=True, debounce_by=None):
                break
        await asyncio.to_thread(freed)

    for way in WAYS:
        LOOP.run_until_complete(left(way))


@works
def errors():
    for way in WAYS:
        long = raised_by(lambda way=way: run(agent(way), TOO_LONG))
        assert isinstance(long, ModelHTTPError), repr(long)
        equal([long.status_code, long.body["code"]], [400, "context_length_exceeded"])
        gone = raised_by(lambda way=way: run(agent(way, model="gone"), "hello"))
        equal([gone.status_code, gone.body["code"]], [404, "model_not_found"])
        busy = raised_by(lambda way=way: run(agent(way, BUSY, "puppet"), "hi"))
        equal([busy.status_code, busy.body["code"]], [503, "inference_capacity"])
