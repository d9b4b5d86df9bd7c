import asyncio

import openai
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from pydantic import BaseModel, HttpUrl
from report import BUSY, GIVEN, ORIGIN, SLOW, TOO_LONG, equal, freed, raised_by, works

set_tracing_disabled(True)
LOOP = asyncio.new_event_loop()
WAYS = [OpenAIChatCompletionsModel, OpenAIResponsesModel]


class Answer(BaseModel):
    answer: int
    source: HttpUrl


@function_tool
def add(a: int, b: int) -> str:
    """Adds."""
    return str(a + b)


def agent(way=OpenAIChatCompletionsModel, origin=ORIGIN, model=GIVEN["generator"], **more):
    client = openai.AsyncOpenAI(base_url=f"{origin}/v1", api_key="none", max_retries=0)
    settings = ModelSettings(temperature=0, include_usage=True)
    return Agent(name="A", model=way(model, openai_client=client), model_settings=settings, **more)


def run(of, words):
    return LOOP.run_until_complete(Runner.run(of, words, max_turns=3))


@works
def chat():
    answer = run(agent(), "hello")
    equal([answer.final_output, answer.context_wrapper.usage.output_tokens], [" from the chain.", 4])


@works
def stream():
    async def streamed(way):
        running = Runner.run_streamed(agent(way), "hello")
        raw = [event.data async for event in running.stream_events() if event.type == "raw_response_event"]
        return [event.delta for event in raw if event.type == "response.output_text.delta"], running.final_output

    for way in WAYS:
        pieces, output = LOOP.run_until_complete(streamed(way))
        equal([len(pieces), "".join(pieces), output], [4, " from the chain.", " from the chain."])


@works
def tools():
    for way in WAYS:
        items = run(agent(way, tools=[add]), "call").new_items
        equal([item.type for item in items][:2], ["tool_call_item", "tool_call_output_item"])
        equal(items[1].output, "3")


@works
def schema():
    for way in WAYS:
        answer = run(agent(way, output_type=Answer), "json").final_output
        assert isinstance(answer, Answer), answer


@works
def responses():
    of = agent(OpenAIResponsesModel)
    first = run(of, "hello")
    equal(first.final_output, " from the chain.")
    again = LOOP.run_until_complete(Runner.run(of, "hello", previous_response_id=first.last_response_id))
    equal(again.final_output, " from the chain.")
    whole = run(of, [*first.to_input_list(), {"role": "user", "content": "hello"}])
    equal(whole.final_output, " from the chain.")


@works
def cancel():
    async def left(way):
        running = Runner.run_streamed(agent(way, SLOW, "puppet"), "drip")
        async for event in running.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                running.cancel()
        # The loop stays: it is the one that closes the connection.
        await asyncio.to_thread(freed)

    for way in WAYS:
        LOOP.run_until_complete(left(way))


@works
def errors():
    for way in WAYS:
        long = raised_by(lambda way=way: run(agent(way), TOO_LONG))
        assert isinstance(long, openai.BadRequestError), repr(long)
        equal(long.code, "context_length_exceeded")
        gone = raised_by(lambda way=way: run(agent(way, model="gone"), "hello"))
        assert isinstance(gone, openai.NotFoundError), repr(gone)
        busy = raised_by(lambda way=way: run(agent(way, BUSY, "puppet"), "hi"))
        equal([busy.status_code, busy.code], [503, "inference_capacity"])
