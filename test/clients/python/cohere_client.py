import cohere
from cohere.core.api_error import ApiError
from report import GIVEN, ORIGIN, equal, raised_by, works

client = cohere.ClientV2(api_key="none", base_url=ORIGIN)
documents = ["a cat sat", "the quick brown fox", "the mat"]


@works
def rerank():
    results = client.rerank(model=GIVEN["reranker"], query="the quick fox", documents=documents, top_n=2).results
    equal(len(results), 2)
    assert results[0].relevance_score >= results[1].relevance_score


@works
def errors():
    gone = raised_by(lambda: client.rerank(model="gone", query="fox", documents=documents))
    assert isinstance(gone, ApiError), gone
    equal(gone.status_code, 404)
    assert 'no model named "gone"' in gone.body["message"], gone.body
