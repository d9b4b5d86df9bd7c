import json
import urllib.request

import openai
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError
from langchain_core.retrievers import BaseRetriever
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel
from report import ADD, BUSY, GIVEN, ORIGIN, SLOW, TOO_LONG, equal, freed, raised_by, works


def chat_of(origin, model):
    return ChatOpenAI(
        model=model, base_url=f"{origin}/v1", api_key="none", temperature=0, max_retries=0, stream_usage=True
    )


model = chat_of(ORIGIN, GIVEN["generator"])


class Answer(BaseModel):
    answer: int


@works
def chat():
    answer = model.invoke("hello")
    equal([answer.content, answer.usage_metadata["output_tokens"]], [" from the chain.", 4])


@works
def stream():
    chunks = list(model.stream("hello"))
    equal("".join(chunk.content for chunk in chunks), " from the chain.")
    equal(sum(chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata), 4)


@works
def tools():
    call = model.bind_tools([ADD]).invoke("call").tool_calls[0]
    equal([call["name"], call["args"]], ["add", {"a": 1, "b": 2}])


@works
def schema():
    equal(model.with_structured_output(Answer, method="json_schema").invoke("json"), Answer(answer=42))


@works
def embeddings():
    embedder = OpenAIEmbeddings(
        model=GIVEN["embedder"], base_url=f"{ORIGIN}/v1", api_key="none", check_embedding_ctx_length=False
    )
    vectors = embedder.embed_documents(["the cat", "a dog"])
    equal([len(vector) for vector in vectors], [32, 32])
    equal(embedder.embed_query("the cat"), vectors[0])


@works
def retriever():
    class TableRetriever(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            body = {"full_text_search": {"match": query, "field": "title"}, "fields": ["title"]}
            request = urllib.request.Request(f"{ORIGIN}/db/v1/tables/dishes/query", json.dumps(body).encode())
            hits = json.load(urllib.request.urlopen(request))["responses"][0]["hits"]["hits"]
            return [Document(id=hit["_id"], page_content=hit["_source"]["title"]) for hit in hits]

    equal([(found.id, found.page_content) for found in TableRetriever().invoke("miso")], [("soup", "Miso soup")])


@works
def cancel():
    chunks = chat_of(SLOW, "puppet").stream("drip")
    next(chunk for chunk in chunks if chunk.content)
    chunks.close()
    freed()


@works
def errors():
    long = raised_by(lambda: model.invoke(TOO_LONG))
    assert isinstance(long, ContextOverflowError), long
    gone = raised_by(lambda: chat_of(ORIGIN, "gone").invoke("hello"))
    assert isinstance(gone, openai.NotFoundError), gone
    busy = raised_by(lambda: chat_of(BUSY, "puppet").invoke("hi"))
    equal(busy.status_code, 503)
